import type { SearchResults } from '#contract/main.ts'
import { GatewayError } from '#kernel/errors.ts'
import type { Exchange } from '#sdk/exchange.ts'
import type { GatewayResponse } from '#sdk/http.ts'
import { answer, badRequest } from './answer.ts'
import { toLink } from './links.ts'
import { type MainParts, rightsOf } from './main-parts.ts'
import { readQuery } from './routes.ts'

const minLength = 2
const maxLength = 100
/** Of each kind. */
const maxFound = 20

const kinds = ['workflow', 'url', 'person'] as const
type Kind = (typeof kinds)[number]

/** Among what the caller sees; people only for those who may request for others. */
export const search =
  ({ settings, visibility, people }: MainParts) =>
  async ({ request, subject }: Exchange): Promise<GatewayResponse> => {
    const query = readQuery(request.query, ['q', 'kind'], ['kind'])
    const text = (query.q[0] ?? '').trim()
    if (text.length < minLength || text.length > maxLength || !text.isWellFormed() || text.includes('\0')) {
      throw badRequest(`q must have ${minLength} to ${maxLength} characters.`)
    }
    const asked = query.kind.map(readKind)
    const wants = (kind: Kind): boolean => asked.length === 0 || asked.includes(kind)
    const { delegate } = rightsOf(settings, subject)
    if (asked.includes('person') && !delegate) {
      throw new GatewayError('ACCESS_DENIED', `"${subject.uid}" may not look for people`)
    }
    const has = (...texts: readonly string[]): boolean =>
      texts.some((one) => one.toLowerCase().includes(text.toLowerCase()))
    const workflows = wants('workflow')
      ? (await visibility.workflows(subject)).filter((one) => has(one.name, one.label, one.description))
      : []
    const urls = wants('url') ? (await visibility.urls(subject)).filter((one) => has(one.name, one.label)) : []
    const persons = wants('person') && delegate ? await people.find(text, maxFound + 1) : []
    const results: SearchResults = {
      workflows: workflows
        .slice(0, maxFound)
        .map(({ name, label, description, org }) => ({ name, label, description, org: org ?? '' })),
      urls: urls.slice(0, maxFound).map(toLink),
      people: persons.slice(0, maxFound),
      more: [workflows, urls, persons].some(({ length }) => length > maxFound),
    }
    return answer(results)
  }

function readKind(word: string): Kind {
  const kind = kinds.find((known) => known === word)
  if (kind === undefined) throw badRequest(`kind must be one of ${kinds.join(', ')}.`)
  return kind
}
