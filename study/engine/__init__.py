"""What every study runs on: sessions with known losses, and a runner that keeps every result."""
