"""Sessions whose items several raters of a panel judge, by a protocol."""
