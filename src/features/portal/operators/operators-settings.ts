import { Dn } from '#identity/dn.ts'
import type { Issues } from '#kernel/issues.ts'
import { isSecretName } from '#kernel/text/redaction.ts'
import { flag, list, text, wholeNumber } from '#sdk/module/parameter-types.ts'
import { type ParsedParameters, readParameters } from '#sdk/module/parameters.ts'
import type { Params } from '#sdk/module/params.ts'
import type { ParseContext } from '#sdk/module/parse-context.ts'

const width = (about: string) => wholeNumber({ about, fallback: 6, min: 1, max: 12 })

export const parameters = {
  bases: list({ about: 'The places of the directory that can be searched, each as `label=DN`.', required: true }),
  searchableAttributes: list({
    about: 'The attributes that users can be searched by, each as `attribute=label`.',
    required: true,
  }),
  resultAttributes: list({ about: 'The attributes of found users, each as `attribute=label`.', required: true }),
  scaleMainAppName: text({
    about: 'The application with the [filters.Main](filters.Main.md) whose profile and workflow are used.',
    required: true,
    reference: 'application',
  }),
  scaleMainURI: text({ about: 'The `uri` of that filter.', required: true }),
  homeUrl: text({ about: 'Where the page leads home to.', required: true }),
  approveChecked: flag({ about: 'Whether the page offers pre-approval as chosen.' }),
  showPreApprove: flag({ about: 'Whether the page offers pre-approval.', fallback: true }),
  approvedLabel: text({ about: 'The label of an approval.', fallback: 'Approved' }),
  deniedLabel: text({ about: 'The label of a denial.', fallback: 'Denied' }),
  reasonApprovedLabel: text({ about: 'The label of the reason of an approval.', fallback: 'Reason for approval' }),
  reasonDeniedLabel: text({ about: 'The label of the reason of a denial.', fallback: 'Reason for denial' }),
  maxWidth: text({ about: "The width of the page's dialog.", fallback: 'sm' }),
  attributesWidth: width('How many of twelve columns the attributes take.'),
  rolesWidth: width('How many of twelve columns the roles take.'),
  rolesWith: wholeNumber({
    about: 'Another spelling of `rolesWidth`, which existing YAML has.',
    requirement: 'no',
    fallback: 0,
    min: 1,
    max: 12,
  }),
  maxResults: wholeNumber({ about: 'How many users a search returns at most.', fallback: 500, min: 1, max: 2_000 }),
}

interface Labelled {
  readonly name: string
  readonly label: string
}

export interface OperatorsSettings {
  readonly given: ParsedParameters<typeof parameters>
  /** By label, in their order. */
  readonly bases: ReadonlyMap<string, Dn>
  readonly searched: readonly Labelled[]
  readonly shown: readonly Labelled[]
}

export function parseOperators(params: Params, issues: Issues, context: ParseContext): OperatorsSettings {
  const given = readParameters(parameters, params, issues, context)
  const attributes = (name: 'searchableAttributes' | 'resultAttributes'): Labelled[] =>
    given[name].flatMap((written, i) => {
      const [attribute, label] = halves(written)
      if (attribute === '' || label === '') {
        issues.error(params.pathOf(name, i), `"${name}": must be "attribute=label", not "${written}"`)
        return []
      }
      if (isSecretName(attribute)) issues.error(params.pathOf(name, i), `"${name}": "${attribute}" is never shown`)
      return [{ name: attribute, label }]
    })
  const bases = new Map<string, Dn>()
  for (const [i, written] of given.bases.entries()) {
    const [label, dn] = halves(written)
    try {
      if (label === '' || dn === '') throw new Error('must be "label=DN"')
      if (bases.has(label)) throw new Error(`the label "${label}" appears twice`)
      bases.set(label, Dn.parse(dn))
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      issues.error(params.pathOf('bases', i), `"bases": "${written}": ${reason}`)
    }
  }
  return { given, bases, searched: attributes('searchableAttributes'), shown: attributes('resultAttributes') }
}

/** Before and after the first equals sign. */
function halves(written: string): readonly [string, string] {
  const equals = written.indexOf('=')
  return [written.slice(0, Math.max(equals, 0)).trim(), written.slice(equals + 1).trim()]
}
