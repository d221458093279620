"""The pure decisions of `landed`: no clock, no chance, no network, no disk.

Reading order: errors · canonical · event · outcome · changes · contract · declared · key ·
operation · absorb · doubt · lease · plan · yes · question · revision · undo · stop · journal ·
sentences · value · session · history · report · rules · scope · draft · operating · advancing ·
releasing · revising · next · store · tool. Each file may import only those before it; import-linter
keeps it so.
"""
