"""Any table that people have, as rows; its columns by what they mean; the rows as items."""
