import type { CommandOutput } from '#cli/command-line/command-line.ts'
import {
  defineCommand,
  fitted,
  operatorName,
  required,
  type Values,
  WrongUsage,
} from '#cli/command-line/command-line.ts'
import { withDatabase } from '#cli/command-line/installation.ts'
import { databaseOptions, outputOption } from '#cli/command-line/options.ts'
import { type ClientToken, newTokenText, tokenState } from '#features/scim/tokens/client-token.ts'
import { tokenAudit } from '#features/scim/tokens/token-audit.ts'
import { systemClock } from '#kernel/clock.ts'
import { newId } from '#kernel/ids.ts'
import { addSpan, isEmptySpan, parseTimeSpan, spanMillis } from '#kernel/time.ts'

const options = {
  client: { value: 'CLIENT', about: 'Uid of the client that gets the token' },
  name: { value: 'NAME', default: 'default', about: 'create, rotate, revoke: name of the token' },
  expires: {
    value: 'SPAN',
    default: '365d',
    about: 'create, rotate: lifetime of the new token, such as 90d or P1Y; "never" for no expiry',
  },
  overlap: { value: 'SPAN', default: '7d', about: 'rotate: how long the former token can still be used' },
  by: { value: 'NAME', about: 'create, rotate, revoke: operator, for the audit (default the system user)' },
  ...databaseOptions,
  ...outputOption,
} as const
type TokenValues = Values<typeof options>

export const scimTokenCommand = defineCommand({
  name: 'scim token',
  about: `Manage the tokens of SCIM clients, for chains with auth.ScimToken. A token is printed once; the database has its hash
only. All changes are in the audit.`,
  options,
  actions: {
    create: { usage: '--client CLIENT [--name NAME] [options]', about: 'Create a token and print it', run: create },
    rotate: {
      usage: '--client CLIENT [--name NAME] [--overlap SPAN] [options]',
      about: 'Create a successor of a token, which expires after the overlap',
      run: rotate,
    },
    list: { usage: '[--client CLIENT] [options]', about: 'List tokens with their expiry and last use', run: list },
    revoke: {
      usage: '--client CLIENT [--name NAME] [options]',
      about: 'Revoke the tokens of that name; no process accepts them after five seconds',
      run: revoke,
    },
  },
  examples: [
    'gatehouse scim token create --client okta --expires 90d',
    'gatehouse scim token rotate --client okta --overlap 24h',
    'gatehouse scim token list',
  ],
})

async function create(values: TokenValues, _: readonly string[], io: CommandOutput): Promise<void> {
  const token = newToken(values)
  await withDatabase(values, async ({ clientTokens }) =>
    clientTokens.add(token, [tokenAudit('add', token, { requestor: token.createdBy })]),
  )
  print(token, io)
}

async function rotate(values: TokenValues, _: readonly string[], io: CommandOutput): Promise<void> {
  const token = newToken(values)
  const overlap = parseTimeSpan(values.overlap)
  const millis = overlap && spanMillis(systemClock(), overlap)
  if (millis === undefined) throw new WrongUsage('--overlap must be a time span such as 24h or 7d')
  const rows = [tokenAudit('replace', token, { requestor: token.createdBy })]
  await withDatabase(values, async ({ clientTokens }) => clientTokens.rotate(token, millis, rows))
  print(token, io)
}

function newToken(values: TokenValues) {
  const client = required(values.client, 'client')
  const createdBy = operatorName(values.by)
  return {
    id: newId(),
    client,
    name: values.name,
    text: newTokenText(),
    createdBy,
    expires: readExpiry(values.expires),
  }
}

function readExpiry(text: string): Date | undefined {
  if (text === 'never') return undefined
  const [now, span] = [systemClock(), parseTimeSpan(text)]
  const isUsable = span !== undefined && !isEmptySpan(span) && spanMillis(now, span) !== undefined
  const end = isUsable ? addSpan(now, span) : undefined
  if (end !== undefined) return end
  throw new WrongUsage('--expires must be a time span such as 90d or P1Y, at most 100 years, or "never"')
}

function print({ text, client, name, expires }: ReturnType<typeof newToken>, io: CommandOutput): void {
  io.stdout(text)
  io.stderr(
    `The token "${name}" of "${client}" ${expires === undefined ? 'does not expire' : `expires ${expires.toISOString()}`}. It is not shown again.`,
  )
  io.result({ token: text, client, name, ...(expires === undefined ? {} : { expires }) })
}

async function list(values: TokenValues, _: readonly string[], io: CommandOutput): Promise<void> {
  await withDatabase(values, async ({ clientTokens }) => {
    const tokens = await clientTokens.list(values.client)
    const now = systemClock()
    await io.list(tokens, {
      lines: (token) => fitted([tokenLine(token, now)]),
      json: (token) => ({ ...token, state: tokenState(token, now) }),
      noun: 'tokens of SCIM clients',
    })
  })
}

function tokenLine(token: ClientToken, now: Date): string {
  const { client, name, created, expires, lastUsed } = token
  const used = lastUsed === undefined ? 'never used' : `last used ${lastUsed.toISOString()}`
  const until = expires === undefined ? 'does not expire' : `expires ${expires.toISOString()}`
  return `${client} ${name} ${tokenState(token, now)}, ${used}, ${until}, created ${created.toISOString()}`
}

async function revoke(values: TokenValues, _: readonly string[], io: CommandOutput): Promise<void> {
  const token = { id: newId(), client: required(values.client, 'client'), name: values.name }
  const requestor = operatorName(values.by)
  const row = tokenAudit('delete', token, { requestor })
  const revoked = await withDatabase(values, async ({ clientTokens }) =>
    clientTokens.revoke(token.client, token.name, requestor, [row]),
  )
  if (revoked === 0) throw new Error(`"${token.client}" has no token "${token.name}" that can be used`)
  io.stdout(`Revoked ${revoked === 1 ? 'the token' : `${revoked} tokens`} "${token.name}" of "${token.client}"`)
  io.result({ client: token.client, name: token.name, revoked })
}
