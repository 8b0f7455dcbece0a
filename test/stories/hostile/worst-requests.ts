import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { moreApis } from './more-apis.ts'

/** A request that costs the gateway as much as its sender can make it. */
export interface WorstRequest {
  readonly as: 'anyone' | 'user' | 'program'
  readonly method: string
  readonly path: string
  readonly type?: string
  readonly body?: string
}

const json = 'application/json'
const scim = 'application/scim+json'
const form = 'application/x-www-form-urlencoded'
const texts = (count: number, prefix: string): string[] => Array.from({ length: count }, (_, i) => `${prefix}${i}`)
const ids = (count: number): string[] =>
  Array.from({ length: count }, (_, i) => `0199a0c1-6d5e-7c33-8e6c-${String(i).padStart(12, '0')}`)
const cart = (lines: number, subjects: readonly string[]): string =>
  JSON.stringify(
    texts(lines, 'line').map((uuid) => ({ uuid, name: 'vault-access', reason: 'on call', subjects: [...subjects] })),
  )
const patch = (operations: readonly unknown[]): string =>
  JSON.stringify({ schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'], Operations: operations })

const put = (path: string, body: string): WorstRequest => ({ as: 'user', method: 'PUT', path, type: json, body })
const get = (path: string): WorstRequest => ({ as: 'user', method: 'GET', path })

/** With the ids of a user and a group for `{user}` and `{group}`. */
export const withIds = (text: string, { user, group }: { readonly user: string; readonly group: string }): string =>
  text.replaceAll('{user}', user).replaceAll('{group}', group)

/** Users of the directory besides those of the quickstart. */
export const crowd = 500

/** Of each operation of `docs/reference/limits.md` that the configuration below has, the most expensive ones. */
export const worstRequests: readonly WorstRequest[] = [
  put('/main/reports/excelx', `${'\n'.repeat(31_000_000)}x`),
  put('/main/reports/excelx', `{${texts(1_200_000, 'k').map((key) => `"${key}":1`)}}`),
  put('/main/reports/excelx', `["${'\\n'.repeat(15_000_000)}`),
  put('/main/workflows', cart(100, texts(500, 'nobody'))),
  put('/main/workflows', cart(1, texts(500, 'nobody'))),
  put('/main/workflows', cart(1, texts(crowd, 'crowd'))),
  put('/main/workflows', cart(100, texts(5, 'crowd'))),
  put('/main/approvals', JSON.stringify({ approvals: ids(100), approved: true, reason: 'x' })),
  put('/main/user', JSON.stringify({ displayName: { name: 'displayName', value: 'x'.repeat(19_000) } })),
  get(`/main/search?q=${'%C3%A9*('.repeat(20)}`),
  get('/main/search?q=crowd'),
  get('/main/requests?limit=500'),
  get('/main/requests?limit=500&about=me'),
  get('/main/approvals?limit=500'),
  get('/main/decisions?limit=500'),
  get('/main/notifications?limit=200'),
  get('/main/access'),
  get('/main/apis'),
  get('/main/admin/audit?format=csv'),
  get('/account/sessions'),
  {
    as: 'user',
    method: 'POST',
    path: '/register/submit',
    type: json,
    body: JSON.stringify({ attributes: { userName: 'x'.repeat(200_000) }, reason: '' }),
  },
  { as: 'anyone', method: 'GET', path: '/register/values?name=team&search=e' },
  { as: 'anyone', method: 'POST', path: '/password', type: json, body: '{"user":"ada"}' },
  { as: 'anyone', method: 'POST', path: '/auth/formLogin', type: form, body: `user=ada&pwd=${'x'.repeat(60_000)}` },
  { as: 'anyone', method: 'POST', path: '/auth/idp/portal/token', type: form, body: 'a=b&'.repeat(16_000) },
  {
    as: 'program',
    method: 'POST',
    path: '/call',
    type: json,
    body: JSON.stringify({
      name: 'crm-sync',
      uidAttributeName: 'uid',
      user: {
        attributes: [
          { name: 'uid', values: ['ada'] },
          ...texts(499, 'a').map((name) => ({ name, values: texts(80, 'v') })),
        ],
      },
    }),
  },
  {
    as: 'program',
    method: 'GET',
    path: `/scim/people/Users?count=200&sortBy=userName&filter=${'not%20('.repeat(45)}userName%20co%20%22e%22${')'.repeat(45)}`,
  },
  {
    as: 'program',
    method: 'GET',
    path: '/scim/people/Groups?count=200&filter=members%20eq%20%22{user}%22%20or%20displayName%20co%20%22e%22',
  },
  {
    as: 'program',
    method: 'PATCH',
    path: '/scim/people/Users/{user}',
    type: scim,
    body: patch(
      texts(900, 'm').flatMap((name) => [
        { op: 'add', path: `emails[type eq "${name}"].value`, value: `${name}@example.com` },
      ]),
    ),
  },
  {
    as: 'program',
    method: 'PATCH',
    path: '/scim/people/Groups/{group}',
    type: scim,
    body: patch([{ op: 'replace', path: 'members', value: texts(90_000, 'nobody').map((value) => ({ value })) }]),
  },
  {
    as: 'program',
    method: 'PATCH',
    path: '/scim/people/Groups/{group}',
    type: scim,
    body: patch(
      texts(1_000, 'crowd').map((name) => ({ op: 'remove', path: `members[value eq "${name}" or value co "x"]` })),
    ),
  },
  {
    as: 'program',
    method: 'POST',
    path: '/scim/people/Bulk',
    type: scim,
    body: JSON.stringify({
      schemas: ['urn:ietf:params:scim:api:messages:2.0:BulkRequest'],
      Operations: texts(1_000, 'b').map(() => ({
        method: 'PATCH',
        path: '/Groups/{group}',
        data: {
          Operations: texts(20, 'crowd').map((name) => ({ op: 'add', path: 'members', value: [{ value: name }] })),
        },
      })),
    }),
  },
]

/** The quickstart with the APIs that it lacks, and more users. Removed at the end of the test. */
export function besiegedConfig(): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-besieged-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  cpSync('examples/quickstart', folder, { recursive: true })
  writeFileSync(join(folder, 'more.yaml'), moreApis)
  const file = join(folder, 'seed/people.json')
  const people = JSON.parse(readFileSync(file, 'utf8'))
  for (const name of texts(crowd, 'crowd')) {
    const attributes = { userName: [name], mail: [`${name}@example.com`], displayName: [name], sn: [name] }
    people.users.push({ userID: name, attributes, groups: ['everyone'] })
  }
  writeFileSync(file, JSON.stringify(people))
  return folder
}
