"""The languages in which filters are written, a package or module for each; all of them lead to the same `Filter`.

`native` is Fieldfare's own, `cesql` CloudEvents SQL, `subscriptions` the filter documents of CloudEvents, `ruler` the
event patterns of Amazon EventBridge, `python` expressions over `field`.
"""
