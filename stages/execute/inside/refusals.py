"""What may not cross the channel, and bytes that no honest end sends. Run alone: no."""


class Refused(Exception):
    """A value that may not cross; `kind` is a verdict kind."""

    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind


class Malformed(BaseException):
    """Bytes that no honest peer sends. No Exception, so that a test's `except Exception` does not hide it."""
