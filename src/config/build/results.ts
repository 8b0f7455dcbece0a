import type { BuildContext } from '#config/build-context.ts'
import type { ResultGroupSpec } from '#model/result-group.ts'

export function buildResultGroup(spec: ResultGroupSpec, context: BuildContext): void {
  const { state, issues, placed } = context
  const results = spec.flatMap(({ resultType: type, source, value }, i) => {
    if (source === 'custom') {
      issues.error(['spec', i, 'source'], 'the source "custom" is known but not supported by this version')
      return []
    }
    if (type !== 'redirect' && !/^[\w!#$%&'*+.^`|~-]+=/.test(value)) {
      issues.error(['spec', i, 'value'], `a ${type} is written as name=value, not "${value}"`)
    }
    return [{ type, source, value }]
  })
  state.draft.resultGroups.set(placed.name, { ...placed, results })
}
