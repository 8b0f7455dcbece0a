import type { BuildContext } from '#config/build-context.ts'
import type { AuditAnchorSpec, AuditSinkSpec } from '#model/audit.ts'
import type { PreparedAuditSink } from '#sdk/audit/audit-sink.ts'
import { defaultAnchorMillis } from '#sdk/module/configuration.ts'

export function buildAuditSink(spec: AuditSinkSpec, context: BuildContext): void {
  const sink = prepare(spec, context)
  const { placed, state } = context
  if (sink !== undefined) state.draft.auditSinks.set(placed.name, { ...placed, sink, start: spec.start ?? 'beginning' })
}

/** Anchors are sent by the same modules as the audit itself. */
export function buildAuditAnchor(spec: AuditAnchorSpec, context: BuildContext): void {
  const sink = prepare(spec, context)
  const { placed, state } = context
  const intervalMillis = spec.intervalSeconds === undefined ? defaultAnchorMillis : spec.intervalSeconds * 1000
  if (sink !== undefined) state.draft.auditAnchors.set(placed.name, { ...placed, sink, intervalMillis })
}

function prepare(spec: AuditSinkSpec | AuditAnchorSpec, context: BuildContext): PreparedAuditSink | undefined {
  const module = context.module(context.state.catalog.auditSinks, spec.className, ['spec', 'className'])
  const params = context.params(spec.params, ['spec', 'params'], spec.secretParams, ['spec', 'secretParams'])
  return module?.prepare(params, context.issues, context)
}
