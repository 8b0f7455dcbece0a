import { resolve } from 'node:path'
import type { Issues } from '#kernel/issues.ts'
import { compileJsonPath, type JsonPath } from '#kernel/json-path.ts'
import { readParameters } from '#sdk/parameters.ts'
import type { Params } from '#sdk/params.ts'
import type { ParseContext } from '#sdk/parse-context.ts'
import { checkOperations } from './check-operations.ts'
import { parameters } from './parameter-table.ts'
import { type Given, readNarrowings, readOperations } from './read-operations.ts'
import type { Authority, EntryPaths, WebhookConfig } from './webhook-config.ts'

export function parseWebhook(params: Params, issues: Issues, context: ParseContext): WebhookConfig {
  const given = readParameters(parameters, params, issues, context)
  const operations = readOperations(given, params, issues)
  const can = checkOperations(operations, given, params, issues)
  const { signingSecret, signatureHeader, timestampHeader } = given
  return {
    connection: {
      url: given.url ?? new URL('https://localhost'),
      authority: readAuthority(given, params, issues, context),
      headers: [...readCredentials(given, params, issues), ...readHeaders(given, params, issues)],
      signing: signingSecret === undefined ? undefined : { secret: signingSecret, signatureHeader, timestampHeader },
      connections: given.connections,
      timeoutMillis: given.timeoutMillis,
      retries: given.retries,
      idempotencyKeys: given.idempotencyKeys,
      maxAnswerBytes: given.maxAnswerKilobytes * 1024,
    },
    limits: { pageSize: given.pageSize, firstPage: given.firstPage, maxEntries: given.maxEntries },
    user: readPaths('user', given),
    group: readPaths('group', given),
    membersAreIds: given.membersAreIds,
    operations,
    usersBy: readNarrowings('searchUsers', given, params, issues),
    groupsBy: readNarrowings('searchGroups', given, params, issues),
    can,
  }
}

function readPaths(entry: 'user' | 'group', given: Given): EntryPaths {
  const attributes = new Map<string, JsonPath>()
  const aliases = new Set<string>()
  const name = entry === 'user' ? given['user.userID'] : given['group.name']
  for (const [attribute, path] of given[`${entry}.attribute.<name>`]) {
    if (path === undefined) continue
    attributes.set(attribute, path.find)
    if (path.text === name?.text) aliases.add(attribute.toLowerCase())
  }
  return {
    name: name?.find ?? compileJsonPath('$.name'),
    id: given[`${entry}.id`]?.find,
    version: given[`${entry}.version`]?.find,
    created: given[`${entry}.created`]?.find,
    modified: given[`${entry}.modified`]?.find,
    links: (entry === 'user' ? given['user.groups'] : given['group.members'])?.find,
    attributes,
    aliases,
  }
}

function readAuthority(given: Given, params: Params, issues: Issues, { folder }: ParseContext): Authority {
  const { caFile, certificate } = given
  if (caFile !== undefined && certificate !== undefined) {
    issues.error(params.pathOf('certificate'), '"certificate" cannot be given beside "caFile"')
  }
  if (caFile !== undefined) return { file: resolve(folder, caFile) }
  return certificate === undefined ? undefined : { pem: certificate }
}

const tokenForm = /^[\x21-\x7e]+$/

/** One way to say who we are; none is possible where a signature does. */
function readCredentials(given: Given, params: Params, issues: Issues): (readonly [string, string])[] {
  const { bearerToken, basicUser, basicPassword, apiKey, apiKeyHeader } = given
  const ways = (['bearerToken', 'basicUser', 'apiKey'] as const).filter((name) => given[name] !== undefined)
  const [first, second] = ways
  if (second !== undefined) issues.error(params.pathOf(second), `"${second}" cannot be given beside "${first}"`)
  if ((basicUser === undefined) !== (basicPassword === undefined)) {
    const missing = basicUser === undefined ? 'basicUser' : 'basicPassword'
    issues.error(params.pathOf(missing), '"basicUser" and "basicPassword" are required together')
  }
  if (basicUser?.includes(':')) issues.error(params.pathOf('basicUser'), '"basicUser" must not hold a colon')
  for (const name of ['bearerToken', 'apiKey'] as const) {
    const value = given[name]
    if (value !== undefined && !tokenForm.test(value)) {
      issues.error(params.pathOf(name), `"${name}": the secret holds characters that no header can`)
    }
  }
  if (bearerToken !== undefined) return [['Authorization', `Bearer ${bearerToken}`]]
  if (apiKey !== undefined) return [[apiKeyHeader, apiKey]]
  if (basicUser === undefined) return []
  const pair = Buffer.from(`${basicUser}:${basicPassword ?? ''}`).toString('base64')
  return [['Authorization', `Basic ${pair}`]]
}

function readHeaders({ headers }: Given, params: Params, issues: Issues): (readonly [string, string])[] {
  return headers.flatMap((header) => {
    const [place] = header.places
    if (place !== undefined) {
      issues.error(
        params.pathOf('headers'),
        `"headers": there is no {${place}} here; they are the same for all requests`,
      )
    }
    const value = header.render(() => undefined)
    return value === undefined ? [] : [[header.name, value] as const]
  })
}
