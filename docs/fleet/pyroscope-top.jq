# SPDX-License-Identifier: Apache-2.0
# The ten functions with the most time of their own, from the answer of Pyroscope's Diff: seconds before, after, and the change.
.flamegraph | .names as $names
| [.levels[].values | map(tonumber) | _nwise(7) | {name: $names[.[6]], before: .[2], after: .[5]}]
| group_by(.name) | map({name: .[0].name, before: (map(.before) | add), after: (map(.after) | add)})
| sort_by(-([.before, .after] | max)) | .[:10][]
| ([.before, .after, .after - .before | . / 1e7 | round / 100] + [.name]) | @tsv
