"""Settings of Spark for tests, which run thousands of small jobs once: what makes long jobs fast would take most of the time.

A compiler that stops at the first tier, no generated code, and no second look at the byte code of Spark's 20,000 classes.
The code cache is large: when it is nearly full, Java throws out code and compiles it again.
"""

from __future__ import annotations

CHEAP_JAVA = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
CHEAP_SQL = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.executorEnv.FIELDFARE_KERNELS": "numpy",  # a worker would load the compiled kernels for a handful of events
    # The other one, for file systems with symbolic links, starts the program `readlink` 30 times for each micro-batch.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
