"""Certificates: the document, its hash chain and signature, and their verification."""
