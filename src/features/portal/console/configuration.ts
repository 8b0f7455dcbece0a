import * as z from 'zod'
import type {
  ConfigurationAccess,
  ConfigurationObject,
  DescribedCaller,
} from '#features/portal/access/configuration-access.ts'
import type {
  ConfigurationObjectView,
  ConfigurationView,
  ExplanationView,
  SetAsideGroup,
} from '#features/portal/contract/console-configuration.ts'
import type { MainParts } from '#features/portal/front/main-parts.ts'
import { answerList, listQuery } from '#features/portal/runs/list-answer.ts'
import { Dn } from '#identity/dn.ts'
import { answer, badRequest, notFound } from '#sdk/api/json-answer.ts'
import { readJsonBody, storableText } from '#sdk/api/json-body.ts'
import type { OperationTable } from '#sdk/api/served-api.ts'
import type { Exchange } from '#sdk/filter/exchange.ts'
import type { GatewayResponse } from '#sdk/http/http.ts'

const maxProblems = 500
const maxCauses = 100
const maxObjects = 20
const maxBodyBytes = 64 * 1024
const maxName = 200
const maxValue = 2000

export const explainSchema = z.strictObject({
  method: z
    .string()
    .regex(/^[A-Za-z]{1,20}$/, 'must be the name of a method')
    .describe('Such as GET.'),
  url: z.string().max(maxValue).describe('The whole URL, such as `https://portal.example.com/main/requests`.'),
  login: storableText(maxName).optional().describe('A user of the directory.'),
  attributes: z
    .record(z.string().max(maxName), z.array(storableText(maxValue)).max(100))
    .optional()
    .describe('Attributes or claims of another caller.'),
  dn: storableText(maxValue).optional().describe('The name of that caller, for rules about names.'),
})

export const configurationOperations = {
  getConfiguration: {
    summary: 'Which configuration runs, how the latest load ended, and its problems',
    answer: 'Configuration',
    handle: showConfiguration,
  },
  listConfigurationObjects: {
    summary: 'The objects of the configuration, with place and status',
    query: {
      kind: 'Such as Application',
      name: 'The start of the name, without regard to letter case',
      status: '"loaded", "warnings", "set aside", "errors" or "not loaded"',
      ...listQuery,
    },
    answer: 'ConfigurationObjects',
    handle: listConfigurationObjects,
  },
  explainRequest: {
    summary: 'Why a request would be allowed or denied. Sends nothing and changes nothing',
    body: 'ExplainRequest',
    answer: 'Explanation',
    handle: explainRequest,
  },
} satisfies OperationTable<MainParts>

function loadedOf({ host }: MainParts): ConfigurationAccess {
  if (host.loaded === undefined) throw notFound('this process is not a gateway')
  return host.loaded
}

async function showConfiguration(parts: MainParts): Promise<GatewayResponse> {
  const { running, latest, problems, objects } = loadedOf(parts).describe()
  const causes = causesOf(objects)
  return answer({
    running: { hash: running.hash, since: running.since.toISOString() },
    latest: { outcome: latest.outcome, time: latest.time.toISOString() },
    served: objects.filter(({ kind, loaded }) => loaded && kind !== 'values').length,
    setAside: objects.filter(({ cause }) => cause !== undefined).length,
    setAsideBecause: causes.slice(0, maxCauses),
    problems: problems.slice(0, maxProblems),
    problemCount: problems.length,
  } satisfies ConfigurationView)
}

/** The error that concerns most objects first. */
function causesOf(objects: readonly ConfigurationObject[]): SetAsideGroup[] {
  const groups = Map.groupBy(objects, ({ cause }) => cause && JSON.stringify([cause.object, cause.at, cause.message]))
  return [...groups.values()]
    .flatMap((group): SetAsideGroup[] => {
      const cause = group[0]?.cause
      if (cause === undefined) return []
      const { object, at: place, message } = cause
      const shown = group.slice(0, maxObjects).map(({ kind, name, file }) => ({
        kind,
        file,
        ...(name === undefined ? {} : { name }),
      }))
      return [{ object, ...(place === undefined ? {} : { place }), message, objects: shown, objectCount: group.length }]
    })
    .sort((a, b) => b.objectCount - a.objectCount)
}

const statuses = ['loaded', 'warnings', 'set aside', 'errors', 'not loaded'] as const

/** The objects that match the query. They are in memory, and `after` counts them. */
async function listConfigurationObjects(parts: MainParts, exchange: Exchange): Promise<GatewayResponse> {
  return await answerList(exchange, ['kind', 'name', 'status'], (given) => {
    const [kind = ''] = given.kind
    const [name = ''] = given.name
    const [status = ''] = given.status
    if (status !== '' && !statuses.some((known) => known === status)) {
      throw badRequest(`status must be one of ${statuses.join(', ')}.`)
    }
    const start = name.toLowerCase()
    const shown = loadedOf(parts)
      .describe()
      .objects.map(shownObject)
      .sort((a, b) => rankOf(a) - rankOf(b))
      .filter(
        (object) =>
          (kind === '' || object.kind === kind) &&
          (status === '' || object.status === status) &&
          (object.name ?? '').toLowerCase().startsWith(start),
      )
    return {
      name: 'objects',
      file: 'configuration',
      read: async ({ after = '0', limit }) => {
        if (!/^\d{1,9}$/.test(after)) throw badRequest('after must be the next of the page before.')
        const end = Number(after) + limit
        return { rows: shown.slice(Number(after), end), ...(end < shown.length ? { next: String(end) } : {}) }
      },
      columns: {
        kind: (object) => object.kind,
        name: (object) => object.name,
        file: ({ file }) => file,
        line: ({ line }) => line,
        status: (object) => object.status,
        setAside: (object) => object.setAside,
        running: ({ running }) => running,
        errors: ({ errors }) => errors,
        warnings: ({ warnings }) => warnings,
      },
    }
  })
}

const urgent: readonly ConfigurationObjectView['status'][] = ['set aside', 'errors', 'not loaded']

/** What needs attention is first. */
function rankOf({ status }: ConfigurationObjectView): number {
  const rank = urgent.indexOf(status)
  return rank < 0 ? urgent.length : rank
}

function shownObject({ loaded, cause: _, ...object }: ConfigurationObject): ConfigurationObjectView {
  return { ...object, running: loaded, status: statusOf({ loaded, ...object }) }
}

function statusOf({ loaded, setAside, errors, warnings }: ConfigurationObject): ConfigurationObjectView['status'] {
  if (setAside !== undefined) return 'set aside'
  if (errors > 0) return 'errors'
  if (!loaded) return 'not loaded'
  return warnings > 0 ? 'warnings' : 'loaded'
}

async function explainRequest(parts: MainParts, { request }: Exchange): Promise<GatewayResponse> {
  const { method, url, ...caller } = await readJsonBody(request, explainSchema, maxBodyBytes)
  const parsed = URL.parse(url)
  if (parsed === null || !/^https?:$/.test(parsed.protocol)) throw badRequest('url must be an http or https URL.')
  const described = await describedCaller(parts, caller)
  const { allowed, lines } = await loadedOf(parts).explain(method.toUpperCase(), parsed, described)
  return answer({ allowed, lines } satisfies ExplanationView)
}

/** A user of the directory with the attributes of the entry, or a caller as described. */
async function describedCaller(
  { people }: MainParts,
  { login = '', attributes = {}, dn = '' }: Pick<z.infer<typeof explainSchema>, 'login' | 'attributes' | 'dn'>,
): Promise<DescribedCaller> {
  const given = new Map(Object.entries(attributes))
  if (login === '') return { attributes: given, dn: dn === '' ? undefined : readDn(dn) }
  if (given.size > 0 || dn !== '') throw badRequest('Give either login, or attributes and dn.')
  const entry = await people.byLogin(login)
  if (entry === undefined) throw badRequest('No user of the directory has this login.')
  return { attributes: new Map(entry.attributes), dn: entry.dn }
}

function readDn(text: string): Dn {
  try {
    return Dn.parse(text)
  } catch {
    throw badRequest('dn must be a name such as uid=ada,ou=people,o=Tremolo.')
  }
}
