import * as z from 'zod'
import type {
  EndedPersonSessions,
  RemovedFactors,
  StartedDeactivation,
} from '#features/portal/contract/console-people.ts'
import { type MainParts, requireOperator } from '#features/portal/front/main-parts.ts'
import { isEntryId } from '#features/portal/front/people.ts'
import { Attributes, isDeactivated } from '#identity/attributes.ts'
import type { DirectoryEntry } from '#identity/directory.ts'
import { GatewayError } from '#kernel/errors.ts'
import { answer, badRequest, notFound } from '#sdk/api/json-answer.ts'
import { readJsonBody, reasonText, storableText } from '#sdk/api/json-body.ts'
import type { OperationTable } from '#sdk/api/served-api.ts'
import type { OperatorChange } from '#sdk/auth/operator-change.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'
import { hasOwnLogin } from '#sdk/login/own-login.ts'
import { findPerson, ownerOf } from './people.ts'

const failures = {
  '400': 'The user is not named by id, or there is no reason',
  '403': 'The caller is not an operator, or is the user',
}

/** What operators change about another user, by identity alone. */
export const personChangeOperations = {
  endSessionsOfPerson: {
    summary: "Ends one of the user's sessions, or all of them",
    body: 'EndPersonSessions',
    answer: 'EndedPersonSessions',
    failures,
    handle: endSessions,
  },
  resetFactorsOfPerson: {
    summary: "Removes the user's second factors and recovery codes",
    body: 'PersonChange',
    answer: 'RemovedFactors',
    failures,
    handle: resetFactors,
  },
  deactivatePerson: {
    summary: 'Starts the workflow that deactivates the user',
    body: 'PersonChange',
    answers: { '202': { description: 'The workflow was started', schema: 'StartedDeactivation' } },
    failures: {
      ...failures,
      '404': 'No workflow for this is configured',
      '409': 'The user is deactivated already, or another user has the same login',
    },
    handle: deactivate,
  },
} satisfies OperationTable<MainParts>

const maxBodyBytes = 16 * 1024

export const personChangeSchema = z.strictObject({ reason: reasonText })
export const endSessionsSchema = z.strictObject({ reason: reasonText, session: storableText(100).optional() })

async function endSessions(parts: MainParts, exchange: Exchange, id = ''): Promise<GatewayResponse> {
  const { entry, change, body } = await readChange(parts, exchange, id, endSessionsSchema)
  const ended = await parts.host.sessions.endByOperator(entry.identity, change, body.session)
  return answer({ ended } satisfies EndedPersonSessions)
}

async function resetFactors(parts: MainParts, exchange: Exchange, id = ''): Promise<GatewayResponse> {
  const { entry, change } = await readChange(parts, exchange, id, personChangeSchema)
  const removed = await parts.host.secondFactors.reset(ownerOf(parts, entry), change)
  return answer({ removed } satisfies RemovedFactors)
}

/** The workflow decides what deactivating means; its run says what became of it. */
async function deactivate(parts: MainParts, exchange: Exchange, id = ''): Promise<GatewayResponse> {
  const { deactivateWorkflow: name, uidAttributeName } = parts.settings.given
  const { entry, change } = await readChange(parts, exchange, id, personChangeSchema)
  if (name === undefined) throw notFound('no deactivateWorkflow', 'No workflow that deactivates users is configured.')
  if (isDeactivated(entry.attributes)) {
    throw new GatewayError('CONFLICT', `${entry.identity} is deactivated`, {
      publicText: 'The user is deactivated already.',
    })
  }
  const { subject } = exchange
  const login = parts.people.loginIn(entry, '')
  // Targets find users by login.
  if (!(await hasOwnLogin({ identity: entry.identity, login }, parts.host.directory, uidAttributeName))) {
    throw new GatewayError('CONFLICT', `another user than ${entry.identity} has the login "${login}" too`, {
      publicText:
        'Another user has the same login and could be deactivated instead. Change one of the two logins first.',
    })
  }
  const started = await parts.host.runs.start({
    head: {
      workflow: name,
      requester: change.by,
      who: { requester: subject.identity, subject: entry.identity },
      requestId: change.requestId,
      reason: change.reason,
    },
    user: { userID: login, attributes: Attributes.from({ [uidAttributeName]: [login] }), groups: [] },
    keepGroups: true,
    params: {},
    asynchronous: true,
    kept: true,
  })
  if (started.kind !== 'started') throw new GatewayError('INTERNAL', `a run without a key was ${started.kind}`)
  return answer({ run: started.result.id } satisfies StartedDeactivation, 202)
}

/** Throws ACCESS_DENIED for others than operators, and for operators who would change something of their own. */
async function readChange<B extends { readonly reason: string }>(
  parts: MainParts,
  exchange: Exchange,
  id: string,
  schema: z.ZodType<B>,
): Promise<{ readonly entry: DirectoryEntry; readonly change: OperatorChange; readonly body: B }> {
  const { request, subject } = exchange
  await requireOperator(parts, exchange)
  const body = await readJsonBody(request, schema, maxBodyBytes)
  if (!isEntryId(id)) throw badRequest('Name the user by id rather than by login.')
  const entry = await findPerson(parts, id)
  if (entry.identity === subject.identity) {
    throw new GatewayError('ACCESS_DENIED', `"${subject.uid}" would change their own account as an operator`, {
      publicText: 'You cannot do this to your own account. Ask another operator.',
    })
  }
  return { entry, body, change: { by: subject.uid, reason: body.reason.trim(), requestId: request.id } }
}
