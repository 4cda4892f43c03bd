"""The outcomes in the layout that the authors of KGDS released."""
