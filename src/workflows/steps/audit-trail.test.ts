import { expect, test } from 'vitest'
import type { AuditEntry } from '#sdk/audit/audit-entry.ts'
import type { TargetChange } from '#sdk/target/target.ts'
import { AuditTrail } from './audit-trail.ts'

const run = { workflow: { id: 'w1', name: 'sync' }, requestor: 'idp' }
const place = { time: new Date(0), subject: 'ada', target: 'people' }
const mail: TargetChange = { subject: 'attribute', action: 'add', attribute: 'mail', value: 'ada@x.org' }

function trailWith(own: boolean) {
  const written: AuditEntry[] = []
  const appendWithin = async (_: object, rows: readonly AuditEntry[]) => {
    if (own) written.push(...rows)
    return own
  }
  return { trail: new AuditTrail(run, { appendWithin }), written }
}

test('an entry that its transaction wrote is counted and not collected', async () => {
  const { trail, written } = trailWith(true)
  trail.add(place, { ...mail, audited: await trail.appendWithin({}, place, [mail]) })
  expect(written).toMatchObject([{ attribute: 'mail', value: 'ada@x.org', subject: 'ada', target: 'people' }])
  expect({ rows: trail.rows, count: trail.count }).toEqual({ rows: [], count: 1 })
})

test('an entry of a transaction in another database is collected', async () => {
  const { trail, written } = trailWith(false)
  trail.add(place, { ...mail, audited: await trail.appendWithin({}, place, [mail]) })
  expect(written).toEqual([])
  expect(trail.rows).toMatchObject([{ attribute: 'mail', requestor: 'idp' }])
})

test('each attribute that was written is listed once, without entries and groups', () => {
  const { trail } = trailWith(false)
  for (const change of [mail, { ...mail, action: 'delete' }, { ...mail, subject: 'group' }] as const)
    trail.add(place, change)
  trail.add({ ...place, target: 'crm' }, { ...mail, subject: 'entry' })
  expect(trail.written).toEqual([{ target: 'people', attribute: 'mail' }])
})

test('values of secret attributes are left out', async () => {
  const { trail } = trailWith(false)
  trail.add(place, { ...mail, attribute: 'userPassword', value: 'hunter2' })
  expect(trail.rows[0]).not.toHaveProperty('value')
})

test('the name of an entry is shown, also if it is that of a Secret', async () => {
  const { trail } = trailWith(false)
  const value = '/api/v1/namespaces/argocd/secrets/repo'
  trail.add(place, { subject: 'entry', action: 'add', attribute: 'kubernetes-Secret', value })
  expect(trail.rows[0]).toMatchObject({ value })
})
