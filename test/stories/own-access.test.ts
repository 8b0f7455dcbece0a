import { describe, expect, test } from 'vitest'
import { until } from '#testing/gateway/gateway-process.ts'
import { usePortalApi } from '#testing/stories/portal-api-story.ts'

interface Listed {
  readonly id: string
  readonly name: string
  readonly expires: string
  readonly removal?: string
}

describe('access that a user gives back and extends', () => {
  const api = usePortalApi()
  const read = async (path: string, as = 'ada') => JSON.parse(await (await api.send(path, { as })).text())

  /** Requests the vault for Ada, and Grace approves it. Returns the request once it is done. */
  async function obtain(): Promise<string> {
    const line = { uuid: crypto.randomUUID(), name: 'vault-access', reason: 'on call' }
    expect((await api.send('/workflows', { method: 'PUT', body: [line] })).status).toBe(200)
    let found: { readonly approval: string; readonly workflow: string } | undefined
    await until(async () => {
      found = (await read('/approvals', 'grace')).approvals[0]
      return found !== undefined
    }, 20_000)
    const { approval, workflow } = found ?? { approval: '', workflow: '' }
    const body = { approved: true, reason: 'fine' }
    expect((await api.send(`/approvals/${approval}`, { as: 'grace', method: 'PUT', body })).status).toBe(200)
    await until(async () => (await read(`/requests/${workflow}`)).state === 'completed', 20_000)
    return workflow
  }

  let first: Listed

  test('access lists the request that granted it, and groups without one have no date', async () => {
    const request = await obtain()
    const { access, groups, ended } = await read('/access')
    expect(access).toMatchObject([
      {
        name: 'vault',
        request: { id: request, label: 'Access to the vault' },
        workflow: { name: 'vault-access' },
        mayGiveBack: true,
      },
    ])
    expect([groups, ended]).toEqual([[], []])
    expect((await read('/access', 'grace')).groups).toEqual([{ name: 'helpdesk' }, { name: 'owners' }])
    first = access[0]
  })

  test('requesting it again, with an approval, extends it', async () => {
    await obtain()
    const { access } = await read('/access')
    expect(access).toMatchObject([{ id: first.id }])
    expect(Date.parse(access[0].expires)).toBeGreaterThan(Date.parse(first.expires))
  })

  test('giving it back removes the group, once', async () => {
    expect((await api.send(`/access/${first.id}/return`, { as: 'grace', method: 'POST' })).status).toBe(404)
    const returned = await api.send(`/access/${first.id}/return`, { method: 'POST' })
    expect(returned.status).toBe(202)
    const { request } = (await returned.json()) as { request: string }
    expect((await api.send(`/access/${first.id}/return`, { method: 'POST' })).status).toBe(409)
    await until(async () => (await read(`/requests/${request}`)).state === 'completed', 20_000)
    expect(await read(`/requests/${request}`)).toMatchObject({
      label: 'Removal of access: vault (people)',
      requestor: 'ada',
    })
    expect((await read('/user')).groups).toEqual([])
    const { access, ended } = await read('/access')
    expect(access).toEqual([])
    expect(ended).toMatchObject([{ id: first.id, name: 'vault', removal: 'completed' }])
  })

  test('access that was given back can be requested again', async () => {
    await obtain()
    const { access, ended } = await read('/access')
    expect(access).toMatchObject([{ name: 'vault' }])
    expect(access[0].id).not.toBe(first.id)
    expect(ended).toEqual([])
  })
})
