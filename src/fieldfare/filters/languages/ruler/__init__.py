"""Event patterns of Amazon EventBridge and Event Ruler."""
