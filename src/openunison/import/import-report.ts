import type { ImportPlan, SetAsideObject } from './import-plan.ts'
import type { OpenUnisonSource } from './openunison-source.ts'

interface ReportOptions {
  readonly source: string
  readonly folder: string
  readonly withSecrets: boolean
  /** The command as the operator calls it. */
  readonly command: string
}

const mostListed = 20

/** What works, what is set aside and why, and what to do next. Shows no secret. */
export function importReport(
  plan: ImportPlan,
  { others, problems, webhooks }: Pick<OpenUnisonSource, 'others' | 'problems' | 'webhooks'>,
  options: ReportOptions,
): string[] {
  const { folder } = options
  const { ready, setAside } = plan
  const total = ready.length + setAside.length
  return [
    `Imported ${options.source} to ${folder}: ${ready.length} of ${total} objects are ready to serve, ${setAside.length} are set aside.`,
    ...section('Ready to serve', columns(countByKind(ready))),
    ...section(`Set aside, in ${folder}/set-aside`, causes(setAside)),
    ...section(
      'Instead of the reverse proxy',
      plan.replacements.flatMap(({ what, files }) => [`  ${what}:`, ...files.map((file) => `    ${folder}/${file}`)]),
    ),
    ...section('Names of groups to correct', listed(plan.groupNames)),
    ...section('Values', valueLines(plan, folder)),
    ...section('Secrets', secretLines(plan, options)),
    ...section('Not part of the configuration', columns(others)),
    ...section('To remove with OpenUnison', webhookLines(webhooks)),
    ...section(
      'Could not be read',
      [...problems, ...plan.problems].map((line) => `  ${line}`),
    ),
    ...section('Next', nextSteps(plan, options)),
  ]
}

const section = (title: string, lines: readonly string[]): string[] => (lines.length === 0 ? [] : ['', title, ...lines])

function countByKind(objects: readonly { readonly kind: string }[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { kind } of objects) counts.set(kind, (counts.get(kind) ?? 0) + 1)
  return counts
}

function columns(counts: ReadonlyMap<string, number>): string[] {
  const width = Math.max(0, ...Array.from(counts.keys(), (kind) => kind.length)) + 4
  return Array.from(counts)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([kind, count]) => `  ${kind.padEnd(width)}${count}`)
}

/** A problem of a script, which names the parameter that has it, and the line in it. */
const lineOfScript = /^(?:"[^"]*": )?(line \d+): (.+)$/s

/** Each cause once, with the objects that have it: errors before what follows from them, the most frequent first. */
function causes(objects: readonly SetAsideObject[]): string[] {
  const places = objects.flatMap(({ kind, name, reasons }) =>
    reasons.map(({ path, message, isElsewhere }) => {
      const [, line, use] = lineOfScript.exec(message) ?? []
      const where = [...(path === '' ? [] : [path]), ...(line === undefined ? [] : [line])].join(', ')
      return { message: use ?? message, isElsewhere, place: `${kind} ${name}${where === '' ? '' : `: ${where}`}` }
    }),
  )
  return [false, true].flatMap((isElsewhere) => listed(places.filter((place) => place.isElsewhere === isElsewhere)))
}

/** Each message once with its places, the most frequent first. */
function listed(places: readonly { readonly place: string; readonly message: string }[]): string[] {
  const groups = Array.from(Map.groupBy(places, ({ message }) => message))
  return groups
    .sort(([, a], [, b]) => b.length - a.length)
    .flatMap(([message, group]) => [
      `  ${message}`,
      ...group.slice(0, mostListed).map(({ place }) => `    ${place}`),
      ...(group.length > mostListed ? [`    and ${group.length - mostListed} more`] : []),
    ])
}

function valueLines({ valueCount, emptyValues }: ImportPlan, folder: string): string[] {
  const found = `  ${folder}/values.yaml has ${valueCount === 1 ? 'one value' : `${valueCount} values`} of #[NAME].`
  const empty = `  No value was found for some names. Add the ones you need to ${folder}/values.yaml: ${emptyValues.join(', ')}`
  const none =
    '  There is neither an OpenUnison object nor the values of a chart, which have the host names: import them with the other objects.'
  const lacks = emptyValues.length > 0
  return [...(valueCount === 0 ? [] : [found]), ...(valueCount === 0 && lacks ? [none] : []), ...(lacks ? [empty] : [])]
}

function secretLines({ secrets }: ImportPlan, { folder, withSecrets }: ReportOptions): string[] {
  const missing = Array.from(secrets).flatMap(([place, { text }]) => (text === undefined ? [place] : []))
  const isKeyPair = (place: string): boolean => place.endsWith('/tls.key')
  // An object that can't do without its certificate is set aside, and names nothing here.
  const isCertificate = (place: string): boolean => place.endsWith('/tls.crt')
  const count = secrets.size - missing.length
  const list = (title: string, places: readonly string[]): string[] =>
    places.length === 0
      ? []
      : [
          `  ${title} ${folder}/secrets:`,
          ...places.slice(0, mostListed).map((place) => `    ${place}`),
          ...(places.length > mostListed ? [`    and ${places.length - mostListed} more`] : []),
        ]
  const absence = withSecrets ? 'Not found' : 'Not imported, since --with-secrets is not given'
  return [
    ...(count === 0 ? [] : [`  ${folder}/secrets has ${count}, readable by you only.`]),
    ...list(
      `${absence}. serve sets aside the objects that name them, until you put them into`,
      missing.filter((place) => !isKeyPair(place) && !isCertificate(place)),
    ),
    ...list(
      `${absence}. Objects are served without these certificates, until you put them into`,
      missing.filter(isCertificate),
    ),
    ...list(`${absence}. serve creates new key pairs for signing, unless you put them into`, missing.filter(isKeyPair)),
  ]
}

/** The API server asks OpenUnison about each change of its objects, and refuses the change without an answer. */
function webhookLines(names: readonly string[] | undefined): string[] {
  if (names?.length === 0) return []
  const refuses = 'the cluster refuses changes of the objects ("failed calling webhook")'
  if (names === undefined) {
    return [
      `  The account may not list ValidatingWebhookConfigurations. While that of OpenUnison exists without OpenUnison, ${refuses}. Find it:`,
      '    kubectl get validatingwebhookconfigurations | grep openunison',
    ]
  }
  return [
    `  While this exists without OpenUnison, ${refuses}. Remove it when OpenUnison is gone:`,
    ...names.slice(0, mostListed).map((name) => `    kubectl delete validatingwebhookconfiguration ${name}`),
    ...(names.length > mostListed ? [`    and ${names.length - mostListed} more`] : []),
  ]
}

/** No other application answers the URLs of those that are set aside. */
function reservedLines(setAside: readonly SetAsideObject[]): string[] {
  const names = setAside.flatMap(({ kind, name }) => (kind === 'Application' ? [name] : []))
  if (names.length === 0) return []
  const shown = names.slice(0, mostListed).join(', ')
  const more = names.length > mostListed ? ` and ${names.length - mostListed} more` : ''
  return [`  Until then, the URLs of these applications get 503: ${shown}${more}. Remove their files to free the URLs.`]
}

function nextSteps({ ready, setAside, warnings }: ImportPlan, { folder, command }: ReportOptions): string[] {
  return [
    ...(setAside.length === 0
      ? []
      : [
          `  Repair objects in ${folder}/set-aside, and move them to ${folder}. The first lines of each file say what is wrong and what to use.`,
          ...reservedLines(setAside),
        ]),
    `  ${command} check --config ${folder}${warnings === 0 ? '' : `    # has ${warnings === 1 ? 'a warning' : `${warnings} warnings`}`}`,
    ...(ready.length === 0 ? [] : [`  ${command} serve --config ${folder}`]),
  ]
}
