import type { FactorOwner } from '#features/account/second-factors/second-factors.ts'
import type {
  ConsolePerson,
  ConsolePersonDetails,
  PersonFactors,
  PersonSessions,
} from '#features/portal/contract/console-people.ts'
import { personFactors, personSession } from '#features/portal/contract/console-people.ts'
import type { MainParts } from '#features/portal/front/main-parts.ts'
import { answerList, listQuery } from '#features/portal/runs/list-answer.ts'
import { runList } from '#features/portal/runs/run-administration.ts'
import type { DirectoryEntry } from '#identity/directory.ts'
import { GatewayError } from '#kernel/errors.ts'
import { wireForm } from '#kernel/wire.ts'
import { answer, notFound } from '#sdk/api/json-answer.ts'
import { readQuery } from '#sdk/api/routes.ts'
import type { OperationTable } from '#sdk/api/served-api.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import { groupRow, personRow, readSearch } from './directory-rows.ts'
import { entryAttributes } from './entry-attributes.ts'
import { groupColumns, groupsOfMember } from './groups.ts'

/** A user, by identity; for reading also by login. Changes are in `person-changes.ts`. */
export const peopleOperations = {
  listPeople: {
    summary: 'The users of the directory',
    query: { q: 'The start of a login, display name or mail address', ...listQuery },
    answer: 'ConsolePeople',
    handle: listPeople,
  },
  getPerson: {
    summary: 'One user, by id or login, with the attributes of the directory that are not secret',
    answer: 'ConsolePersonDetails',
    failures: { '409': 'Several users have this login' },
    handle: showPerson,
  },
  listGroupsOfPerson: {
    summary: 'The groups that the user is a direct member of',
    query: listQuery,
    answer: 'ConsoleGroups',
    handle: listGroupsOfPerson,
  },
  listSessionsOfPerson: {
    summary: "The user's sessions in all applications",
    answer: 'PersonSessions',
    handle: listSessions,
  },
  listFactorsOfPerson: {
    summary: "The user's second factors, without their secrets",
    answer: 'PersonFactors',
    handle: listFactors,
  },
  listRunsOfPerson: {
    summary: 'The stored runs about the user, latest first',
    query: listQuery,
    answer: 'AdminRuns',
    handle: listRuns,
  },
} satisfies OperationTable<MainParts>

/** Throws NOT_FOUND, and CONFLICT for a login that several users have. */
export async function findPerson({ people }: MainParts, id: string): Promise<DirectoryEntry> {
  try {
    const entry = await people.byIdOrLogin(id)
    if (entry !== undefined) return entry
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== 'CONFLICT') throw error
    throw new GatewayError('CONFLICT', error.message, {
      publicText: 'Several users have this login. Open the user from the list.',
    })
  }
  throw notFound(`no user "${id.slice(0, 80)}"`, 'There is no such user in the directory.')
}

/** The owner of a user's second factors. */
export const ownerOf = ({ people }: MainParts, entry: DirectoryEntry): FactorOwner => ({
  identity: entry.identity,
  dn: entry.dn,
  uid: people.loginIn(entry, entry.dn.toString()),
})

async function listPeople(parts: MainParts, exchange: Exchange): Promise<GatewayResponse> {
  return await answerList<ConsolePerson, 'q'>(exchange, ['q'], ({ q }) => {
    const text = readSearch(q)
    return {
      name: 'people',
      read: async (page) => {
        const { entries, next } = await parts.people.page(text, page)
        return { rows: entries.map((entry) => personRow(parts.people, entry)), next }
      },
      columns: {
        login: ({ login }) => login,
        displayName: ({ displayName }) => displayName,
        mail: ({ mail }) => mail,
        deactivated: ({ deactivated }) => deactivated,
        id: ({ id }) => id,
      },
    }
  })
}

async function showPerson(parts: MainParts, { request, subject }: Exchange, id = ''): Promise<GatewayResponse> {
  readQuery(request.query, [])
  const entry = await findPerson(parts, id)
  const row = personRow(parts.people, entry)
  const own = entry.identity === subject.identity
  return answer({
    ...row,
    dn: entry.dn.toString(),
    attributes: entryAttributes(entry.attributes),
    own,
    canDeactivate: parts.settings.given.deactivateWorkflow !== undefined && !row.deactivated && !own,
  } satisfies ConsolePersonDetails)
}

async function listGroupsOfPerson(parts: MainParts, exchange: Exchange, id = ''): Promise<GatewayResponse> {
  const { dn } = await findPerson(parts, id)
  return await answerList(exchange, [], () => ({
    name: 'groups',
    read: async (page) => {
      const { entries, next } = await groupsOfMember(parts, dn, page)
      return { rows: entries.map(groupRow), next }
    },
    columns: groupColumns,
  }))
}

async function listSessions(parts: MainParts, { request }: Exchange, id = ''): Promise<GatewayResponse> {
  readQuery(request.query, [])
  const { identity } = await findPerson(parts, id)
  const sessions = await parts.host.sessions.ofUser(identity)
  return answer({ sessions: sessions.map((one) => wireForm(personSession, one)) } satisfies PersonSessions)
}

async function listFactors(parts: MainParts, { request }: Exchange, id = ''): Promise<GatewayResponse> {
  readQuery(request.query, [])
  const owner = ownerOf(parts, await findPerson(parts, id))
  const { secondFactors } = parts.host
  const [factors, recoveryCodes] = await Promise.all([secondFactors.of(owner), secondFactors.recoveryCodes(owner)])
  return answer({
    factors: factors.map((factor) => wireForm(personFactors.shape.factors.element, factor)),
    recoveryCodes,
  } satisfies PersonFactors)
}

/** By identity: another user may have had the login before. */
async function listRuns(parts: MainParts, exchange: Exchange, id = ''): Promise<GatewayResponse> {
  const entry = await findPerson(parts, id)
  const about = { identity: entry.identity, login: parts.people.loginIn(entry, '') }
  return await answerList(exchange, [], () => runList(parts, exchange, { about }))
}
