import { resolve } from 'node:path'
import type { AuditSinkConfig, Configuration } from '#config/configuration/configuration.ts'
import { ownPlaces } from '#server/composition/private-files.ts'
import { ok, type Probe, problem } from './diagnosis.ts'

const advice = 'Let the user of the gateway write the file and its folder, or choose another file.'

/** Whether the files can be written that copies of the audit, or its anchors, go to. Receivers elsewhere are not asked. */
export function auditProbes(
  { auditSinks, auditAnchors }: Configuration,
  { data, databaseUrl }: { readonly data: string; readonly databaseUrl: string | undefined },
): Probe[] {
  const places = ownPlaces(resolve(data), databaseUrl)
  const probe = (kind: string, { name, sink }: Pick<AuditSinkConfig, 'name' | 'sink'>): Probe => ({
    probe: 'audit',
    at: `${kind} ${name}`,
    advice,
    run: async () => {
      const copy = await sink.create({ name, ...places })
      if (copy.problem === undefined) return []
      const seen = await copy.problem()
      return [seen === undefined ? ok('the file can be written') : problem(seen, advice)]
    },
  })
  return [
    ...Array.from(auditSinks.values(), (one) => probe('AuditSink', one)),
    ...Array.from(auditAnchors.values(), (one) => probe('AuditAnchor', one)),
  ]
}
