"""Rules of Sigma as a workload: a folder of rules written by people, and log events."""
