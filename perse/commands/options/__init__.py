"""What commands of perse are given: each option said once, and groups of options that several commands take."""
