"""Rules of Sigma as a workload: a folder of rules that people wrote, and log events."""
