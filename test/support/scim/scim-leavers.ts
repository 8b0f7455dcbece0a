import type { ScimClientName } from '#cli/init/scim.ts'
import { coreUser, type ScimClient } from '#testing/scim/scim-client.ts'

interface Answer {
  readonly status: number
}

/** One way in which a provider deactivates a user. */
export interface Leaver {
  readonly client: ScimClientName
  readonly way: string
  deprovision(client: ScimClient, id: string): Promise<Answer>
}

const patch =
  (value: unknown, path?: string, op = 'replace') =>
  (client: ScimClient, id: string): Promise<Answer> =>
    client.patch(`/Users/${id}`, [{ op, ...(path === undefined ? {} : { path }), value }])

/** Reads the whole user and sends it back with `active` false. */
async function put(client: ScimClient, id: string): Promise<Answer> {
  const { body } = await client.get(`/Users/${id}`)
  const { meta: _meta, groups: _groups, ...user } = body
  return client.put(`/Users/${id}`, { ...user, schemas: [coreUser], active: false })
}

const remove = (client: ScimClient, id: string): Promise<Answer> => client.delete(`/Users/${id}`)

/** What each provider sends for a user who leaves. */
export const leavers: readonly Leaver[] = [
  { client: 'entra', way: 'PATCH with a text, as without the flag', deprovision: patch('False', 'active', 'Replace') },
  { client: 'entra', way: 'PATCH with a boolean, as with the flag', deprovision: patch(false, 'active') },
  { client: 'entra', way: 'DELETE after 30 days', deprovision: remove },
  { client: 'okta', way: 'GET and PUT', deprovision: put },
  { client: 'okta', way: 'PATCH without a path', deprovision: patch({ active: false }) },
  { client: 'sailpoint', way: 'PATCH', deprovision: patch(false, 'active') },
  { client: 'sailpoint', way: 'PUT', deprovision: put },
  { client: 'sailpoint', way: 'DELETE', deprovision: remove },
  { client: 'onelogin', way: 'suspend', deprovision: patch(false, 'active') },
  { client: 'onelogin', way: 'delete', deprovision: remove },
  { client: 'jumpcloud', way: 'PATCH without a path', deprovision: patch({ active: false }) },
  { client: 'jumpcloud', way: 'DELETE of the test user', deprovision: remove },
  { client: 'google', way: 'PUT', deprovision: put },
  { client: 'aws', way: 'PATCH', deprovision: patch(false, 'active') },
  { client: 'aws', way: 'DELETE', deprovision: remove },
  { client: 'github', way: 'PATCH without a path', deprovision: patch({ active: false }) },
  { client: 'github', way: 'DELETE', deprovision: remove },
  { client: 'slack', way: 'PATCH', deprovision: patch(false, 'active') },
  { client: 'slack', way: 'DELETE', deprovision: remove },
]
