"""How far the verifying judge agrees with people."""
