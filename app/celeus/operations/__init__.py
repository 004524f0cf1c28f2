"""Operations of the service; each runs in one transaction."""
