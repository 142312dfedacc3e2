"""Attacks: what threads, forks, a hostile cache, too little memory, huge sizes, hostile inputs and signals do to us."""
