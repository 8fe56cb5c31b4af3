# perseus-plan/1: custom, 3 ranks, 1 microbatches
# iteration 2.999999999s, energy 24.000000001J
[
[('forward', 1410), ('backward', 210)],
[('it\'s \\ "odd",\U0000000aλ', 0)],
[],
]
