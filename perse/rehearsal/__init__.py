"""Personalized opinion summaries, written with a role-played reader under supervision (Rehearsal; see docs/rehearsal.md).

`methods` says which parts each method has; `process` runs them over all samples in waves; `roleplay`, `filtering` and `rewriting` are the parts.
"""
