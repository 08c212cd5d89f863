"""The names that tools of an Iris agent import, for interpreters without Iris itself.

It needs pydantic 2 and nothing else, and works without a gateway, so that tools can be tested.
"""
