"""Routes of sessions: opening, drawing, judging, history and the judges' task."""
