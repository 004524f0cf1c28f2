"""Files and logs that people have, as rows of a pool: sources, formats, and what columns mean."""
