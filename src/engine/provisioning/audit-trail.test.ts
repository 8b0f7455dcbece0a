import { expect, test } from 'vitest'
import type { AuditEntry } from '#domain/audit.ts'
import { AuditTrail } from '#engine/provisioning/audit-trail.ts'
import type { TargetChange } from '#sdk/target/target.ts'

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

test('what its transaction wrote is counted, and not written again', async () => {
  const { trail, written } = trailWith(true)
  await trail.appendWithin({}, place, [mail])
  trail.add(place, mail)
  expect(written).toMatchObject([{ attribute: 'mail', value: 'ada@x.org', subject: 'ada', target: 'people' }])
  expect({ rows: trail.rows, count: trail.count }).toEqual({ rows: [], count: 1 })
})

test('what a transaction of another database did is written with the run', async () => {
  const { trail, written } = trailWith(false)
  await trail.appendWithin({}, place, [mail])
  trail.add(place, mail)
  expect(written).toEqual([])
  expect(trail.rows).toMatchObject([{ attribute: 'mail', requestor: 'idp' }])
})

test('a transaction that was undone leaves nothing that counts as written', async () => {
  const { trail } = trailWith(true)
  await trail.appendWithin({}, place, [mail])
  const again = { ...mail }
  trail.add(place, again)
  expect(trail.rows).toHaveLength(1)
})

test('values of secrets stay out', async () => {
  const { trail } = trailWith(false)
  trail.add(place, { ...mail, attribute: 'userPassword', value: 'hunter2' })
  expect(trail.rows[0]).not.toHaveProperty('value')
})
