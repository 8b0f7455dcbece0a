import type { BuildContext } from '#config/build-context.ts'
import type { NotifierSpec } from '#model/notifier.ts'

export function buildNotifier(spec: NotifierSpec, context: BuildContext): void {
  const { state, issues, placed } = context
  const module = context.module(state.catalog.notifiers, spec.className, ['spec', 'className'])
  const params = context.params(spec.params, ['spec', 'params'], spec.secretParams, ['spec', 'secretParams'])
  if (module === undefined) return
  state.draft.notifiers.set(placed.name, { ...placed, notifier: module.prepare(params, issues, context) })
}
