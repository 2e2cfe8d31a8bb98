"""Spark drivers in processes of their own, which are killed or lose executors."""
