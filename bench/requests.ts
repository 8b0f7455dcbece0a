import type { MeasuredGateway } from './gateway.ts'
import { loginOf } from './seed.ts'

/** The bytes of the n-th request. */
export type RequestMaker = (n: number) => string

const patchSchema = 'urn:ietf:params:scim:api:messages:2.0:PatchOp'
let created = 0

/** The measured requests to the gateway at `path`. */
export function scimRequests({ port, token }: Pick<MeasuredGateway, 'port' | 'token'>, path: string) {
  const users = `${path}/Users`
  const head = (method: string, address: string, more = ''): string =>
    `${method} ${address} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${token}\r\n${more}\r\n`
  const withBody = (method: string, address: string, value: object): string => {
    const body = JSON.stringify(value)
    const length = Buffer.byteLength(body)
    return head(method, address, `Content-Type: application/scim+json\r\nContent-Length: ${length}\r\n`) + body
  }
  const createOf = (login: string): string =>
    withBody('POST', users, {
      schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'],
      userName: login,
      name: { givenName: 'New', familyName: 'Person' },
      emails: [{ value: `${login}@example.com`, type: 'work', primary: true }],
      active: true,
    })
  const random = (count: number): number => Math.floor(Math.random() * count)
  return {
    byId:
      (ids: readonly string[]): RequestMaker =>
      () =>
        head('GET', `${users}/${ids[random(ids.length)]}`),
    byLogin:
      (count: number): RequestMaker =>
      () =>
        head('GET', `${users}?filter=${encodeURIComponent(`userName eq "${loginOf(random(count))}"`)}`),
    get: (address: string): string => head('GET', address),
    page: (): string => head('GET', `${users}?count=100`),
    create: (): string => createOf(`new${created++}`),
    createOf,
    /** Each pass over the ids turns all of them off or on, so that every request is a change. */
    active:
      (ids: readonly string[]): RequestMaker =>
      (n) =>
        withBody('PATCH', `${users}/${ids[n % ids.length]}`, {
          schemas: [patchSchema],
          Operations: [{ op: 'replace', path: 'active', value: Math.floor(n / ids.length) % 2 === 1 }],
        }),
    rename: (id: string, displayName: string): string =>
      withBody('PATCH', `${users}/${id}`, {
        schemas: [patchSchema],
        Operations: [{ op: 'replace', path: 'displayName', value: displayName }],
      }),
    member: (group: string, op: 'add' | 'remove', members: readonly string[]): string =>
      withBody('PATCH', `${path}/Groups/${group}`, {
        schemas: [patchSchema],
        Operations: [{ op, path: 'members', value: members.map((value) => ({ value })) }],
      }),
  }
}

/** Answers of GETs as JSON; for preparing a measurement, not for measuring. */
export async function readJson<T>(
  { port, token }: Pick<MeasuredGateway, 'port' | 'token'>,
  address: string,
): Promise<T> {
  const response = await fetch(`http://127.0.0.1:${port}${address}`, { headers: { authorization: `Bearer ${token}` } })
  if (!response.ok) throw new Error(`${address}: ${response.status} ${await response.text()}`)
  return (await response.json()) as T
}

interface List {
  readonly Resources: readonly { readonly id: string }[]
  readonly nextCursor?: string
}

/** The ids of some users, spread over the whole directory. */
export async function someIds(
  gateway: Pick<MeasuredGateway, 'port' | 'token'>,
  path: string,
  count: number,
  wanted = 1000,
): Promise<string[]> {
  const ids: string[] = []
  const pages = Math.max(1, Math.floor(wanted / 100))
  for (let page = 0; page < pages; page++) {
    const start = 1 + Math.floor((page * count) / pages)
    const { Resources } = await readJson<List>(gateway, `${path}/Users?count=100&startIndex=${start}&attributes=id`)
    ids.push(...Resources.map(({ id }) => id))
  }
  return ids
}

export type { List }
