import * as z from 'zod'
import { createdScimToken, scimToken, scimTokens } from '#features/portal/contract/console-tokens.ts'
import { type MainParts, requireOperator } from '#features/portal/front/main-parts.ts'
import { answerList, listParameters, listQuery } from '#features/portal/runs/list-answer.ts'
import { journalFilters, readJournalQuery, shownCall } from '#features/scim/journal/journal-answer.ts'
import { type ClientToken, newTokenText, tokenState } from '#features/scim/tokens/client-token.ts'
import { tokenAudit } from '#features/scim/tokens/token-audit.ts'
import { GatewayError } from '#kernel/errors.ts'
import { newId } from '#kernel/ids.ts'
import { wireForm } from '#kernel/wire.ts'
import { answer, notFound } from '#sdk/api/json-answer.ts'
import { readJsonBody, reasonText, storableText } from '#sdk/api/json-body.ts'
import { readQuery } from '#sdk/api/routes.ts'
import type { OperationTable } from '#sdk/api/served-api.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'

const maxBodyBytes = 16 * 1024

export const newTokenSchema = z.strictObject({
  client: storableText(64).min(1).describe('The name of a tenant, which is the `uid` of its client'),
  name: storableText(64).min(1),
  expiresInDays: z.int().min(1).max(36_500).nullable().default(365).describe('Null: the token does not expire'),
})

export const tokenChangeSchema = z.strictObject({ reason: reasonText })

export const scimOperations = {
  getScimJournal: {
    summary: 'Calls of SCIM clients',
    query: { ...journalFilters, ...listQuery },
    answer: 'ScimJournalPage',
    handle: listScimCalls,
  },
  getScimTokens: {
    summary: 'Tokens of SCIM clients, with their expiry and last use',
    query: { client: 'Only tokens of this client' },
    answer: 'ScimTokens',
    handle: listScimTokens,
  },
  createScimToken: {
    summary: 'Creates a token of a SCIM tenant; only this answer has its text',
    body: 'NewScimToken',
    answers: { '201': { description: 'The token', schema: 'CreatedScimToken' } },
    failures: {
      '403': 'The caller is not an operator',
      '409': 'No operator added this client, or it has a token of that name, or too many',
    },
    handle: createScimToken,
  },
  revokeScimToken: {
    summary: 'Revokes a token of a SCIM client; no gateway accepts it after five seconds',
    body: 'ScimTokenChange',
    answer: 'ScimToken',
    failures: { '403': 'The caller is not an operator', '409': 'The token expired or was revoked before' },
    handle: revokeScimToken,
  },
} satisfies OperationTable<MainParts>

const shownToken = <T extends ClientToken>(token: T, now: Date) => ({ ...token, state: tokenState(token, now) })

async function listScimTokens({ host }: MainParts, { request }: Exchange): Promise<GatewayResponse> {
  const { client } = readQuery(request.query, ['client'])
  const now = host.clock()
  const tokens = (await host.scimClients.tokens.list(client[0])).map((token) => shownToken(token, now))
  return answer(wireForm(scimTokens, { tokens }))
}

async function createScimToken(parts: MainParts, exchange: Exchange): Promise<GatewayResponse> {
  await requireOperator(parts, exchange)
  const { request, subject } = exchange
  const { host } = parts
  const { client, name, expiresInDays } = await readJsonBody(request, newTokenSchema, maxBodyBytes)
  // A token of a client of the configuration would be a way around the approvals of what this client may change.
  if ((await host.scimClients.tenants.get(client)) === undefined) {
    throw new GatewayError('CONFLICT', `"${client}" is no tenant`, {
      publicText: 'Tokens of clients of the configuration are created with "gatehouse scim-token". Choose a tenant.',
    })
  }
  const [now, text] = [host.clock(), newTokenText()]
  const expires = expiresInDays === null ? {} : { expires: new Date(now.getTime() + expiresInDays * dayMillis) }
  const token = { id: newId(), client, name, createdBy: subject.uid, ...expires }
  const by = { requestor: subject.uid, requestId: request.id }
  await host.scimClients.tokens.add({ ...token, text }, [tokenAudit('add', token, by)])
  return answer(wireForm(createdScimToken, { ...shownToken({ ...token, created: now }, now), text }), 201)
}

const dayMillis = 24 * 3600_000

async function revokeScimToken(parts: MainParts, exchange: Exchange, id = ''): Promise<GatewayResponse> {
  await requireOperator(parts, exchange)
  const { request, subject } = exchange
  const { scimClients, clock } = parts.host
  const { reason } = await readJsonBody(request, tokenChangeSchema, maxBodyBytes)
  const token = await scimClients.tokens.get(id)
  if (token === undefined) throw notFound(`no token "${id.slice(0, 80)}"`, 'There is no such token.')
  const audit = tokenAudit('delete', token, { requestor: subject.uid, requestId: request.id, reason: reason.trim() })
  if (!(await scimClients.tokens.revokeById(id, subject.uid, [audit]))) {
    throw new GatewayError('CONFLICT', `the token ${id} could not be used before`, {
      publicText: 'This token expired or was revoked before.',
    })
  }
  return answer(wireForm(scimToken, shownToken((await scimClients.tokens.get(id)) ?? token, clock())))
}

/** The journals of the SCIM gateways that the portal shows, latest first. */
async function listScimCalls({ settings, host }: MainParts, exchange: Exchange): Promise<GatewayResponse> {
  const filters = new URLSearchParams(exchange.request.query)
  for (const name of listParameters) filters.delete(name)
  for (const [name, value] of [...filters]) if (value === '') filters.delete(name, value)
  return await answerList(
    exchange,
    ['gateway', 'failed', 'status', 'since'],
    () => {
      const query = readJournalQuery(filters, settings.given.scimJournals, host.clock())
      return {
        name: 'entries',
        file: 'scim-journal',
        read: async (page) => {
          const { entries, next } = await host.journals.list({ ...query, ...page })
          return { rows: entries.map(shownCall), next }
        },
        columns: {
          time: ({ time }) => time.toISOString(),
          gateway: ({ gateway }) => gateway,
          client: ({ caller }) => caller,
          method: ({ method }) => method,
          path: ({ path }) => path,
          status: ({ status }) => status,
          scimType: ({ scimType }) => scimType,
          error: ({ error }) => error,
          millis: ({ millis }) => millis,
          requestId: ({ requestId }) => requestId,
          workflows: ({ workflows }) => workflows.join(' '),
          dryRun: ({ dryRun = false }) => dryRun,
        },
      }
    },
    ['gateway'],
  )
}
