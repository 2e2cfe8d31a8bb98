"""The pipeline under load: the bars of `fieldfare bench pipeline`, a module for each bar."""
