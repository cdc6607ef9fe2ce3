# SPDX-License-Identifier: Apache-2.0
# The ten functions with the most time of their own, from two of Parca's REPORT_TYPE_TOP: seconds before, after, and the change.
# usage: jq -rs -f parca-top.jq before.json after.json
def name: if .meta.function then .meta.function.name else "[" + (.meta.mapping.file | split("/") | last) + "]" end;
def functions: [.top.list[] | {name: name, own: (.flat | tonumber)}] | group_by(.name) | map({(.[0].name): (map(.own) | add)}) | add;
map(functions) as [$before, $after]
| ($before + $after | keys) | map({name: ., before: ($before[.] // 0), after: ($after[.] // 0)})
| sort_by(-([.before, .after] | max)) | .[:10][]
| ([.before, .after, .after - .before | . / 1e7 | round / 100] + [.name]) | @tsv
