import { expect, test } from 'vitest'
import { MemoryTarget } from '#testing/targets/memory-target.ts'
import { issuesOf, parseTasks, startWorkflows } from '#testing/workflows/workflow-fixture.ts'

test('deletes the user, and deleting again succeeds without a change', async () => {
  const store = new MemoryTarget([{ userID: 'jjackson' }, { userID: 'other' }])
  const { run, audit } = await startWorkflows({
    workflows: { bye: [{ taskType: 'delete', target: 'store' }] },
    targets: { store },
  })
  expect(await run('bye')).toMatchObject({ changes: 1 })
  expect(await run('bye')).toMatchObject({ changes: 0 })
  expect(store.stored('jjackson')).toBeUndefined()
  expect(store.stored('other')).toBeDefined()
  expect(audit.rows).toMatchObject([{ kind: 'entry', action: 'delete', value: 'jjackson', target: 'store' }])
})

test('is bound to the version that the caller read, if the caller named one of this target', async () => {
  const store = new MemoryTarget([{ userID: 'jjackson' }])
  const { run } = await startWorkflows({
    workflows: { bye: [{ taskType: 'delete', target: 'store' }] },
    targets: { store },
  })
  const stale = run('bye', { basedOn: { target: 'store', version: '0' } })
  await expect(stale).rejects.toMatchObject({ code: 'VERSION_MISMATCH' })
  store.before = ({ method }) => {
    if (method === 'deleteUser') store.touch('jjackson', [])
  }
  const raced = run('bye', { basedOn: { target: 'store', version: '1' } })
  await expect(raced).rejects.toMatchObject({ code: 'VERSION_MISMATCH' })
  expect(store.stored('jjackson')).toBeDefined()
  store.before = () => {}
  await run('bye', { basedOn: { target: 'elsewhere', version: '0' } })
  expect(store.stored('jjackson')).toBeUndefined()
  await run('bye', { basedOn: { target: 'store', version: '1' } })
})

test('deletes a user who only has to exist', async () => {
  const store = new MemoryTarget([{ userID: 'jjackson' }])
  const workflows = { bye: [{ taskType: 'delete', target: 'store' }] }
  const { run } = await startWorkflows({ workflows, targets: { store } })
  expect(await run('bye', { basedOn: { target: 'store', version: '*' } })).toMatchObject({ changes: 1 })
  expect(store.stored('jjackson')).toBeUndefined()
})

test('needs a target that exists', () => {
  expect(issuesOf([{ taskType: 'delete' }])).toEqual(['0.target: "target" is required'])
  expect(parseTasks([{ taskType: 'delete', target: 't' }]).referred).toEqual([
    { kind: 'target', name: 't', path: [0, 'target'] },
  ])
})
