"""Row patterns of SQL: MATCH_RECOGNIZE on tables of Arrow."""

from fieldfare.patterns.row_patterns.matching import RowPatternError
from fieldfare.patterns.row_patterns.recognition import RowPattern, compile_clause, match_recognize

__all__ = ["RowPattern", "RowPatternError", "compile_clause", "match_recognize"]
