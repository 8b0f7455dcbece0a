import type { Filter } from '#identity/filter/ast.ts'
import { matches } from '#identity/filter/evaluate.ts'
import { parseFilter } from '#identity/filter/parse-filter.ts'
import type { Subject } from '#identity/subject.ts'
import type { Issues } from '#kernel/issues.ts'
import type { Params } from '#sdk/params.ts'

/** Decides what one person may do in a portal, where that is not the same for all. */
export interface UiHelper {
  mayEdit(subject: Subject): boolean
  /** The attributes that the person sees and edits. */
  attributesOf(subject: Subject): ReadonlySet<string>
  mayDelegate(subject: Subject): boolean
  mayPreApprove(subject: Subject): boolean
}

const helperNames: ReadonlySet<string> = new Set(['FilterHelper', 'com.tremolosecurity.scalejs.helpers.FilterHelper'])

interface FilterHelperSettings {
  readonly allowed: Filter[]
  readonly byFilter: { readonly filter: Filter; readonly attributes: ReadonlySet<string> }[]
  delegation: boolean
  preApproval: boolean
}

/** Undefined where there is none, or it cannot be made; that is reported. */
export function readUiHelper(
  given: { readonly uiHelperClassName: string | undefined; readonly 'uihelper.params': readonly string[] },
  params: Params,
  issues: Issues,
): UiHelper | undefined {
  const { uiHelperClassName: className, 'uihelper.params': lines } = given
  if (className === undefined) {
    if (lines.length > 0) {
      issues.error(params.pathOf('uihelper.params'), '"uihelper.params" is not used without "uiHelperClassName"')
    }
    return undefined
  }
  if (!helperNames.has(className)) {
    const message = `no UI helper "${className}"; there is ${[...helperNames].join(', or ')}`
    issues.error(params.pathOf('uiHelperClassName'), message)
    return undefined
  }
  const settings: FilterHelperSettings = { allowed: [], byFilter: [], delegation: false, preApproval: false }
  for (const [i, line] of lines.entries()) {
    try {
      readLine(line, settings)
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      issues.error(params.pathOf('uihelper.params', i), `"uihelper.params": ${reason}`)
    }
  }
  return filterHelper(settings)
}

function readLine(line: string, settings: FilterHelperSettings): void {
  const [, name, value = ''] = /^([A-Za-z]+)=(.*)$/s.exec(line.trim()) ?? []
  switch (name) {
    case 'allowedFilters':
      settings.allowed.push(parseFilter(value))
      return
    case 'filterMap': {
      const end = value.lastIndexOf('=')
      const attributes = value.slice(end + 1).split(',')
      if (end < 1 || attributes.some((one) => one.trim() === '')) {
        throw new Error(`filterMap is written as filter=attribute,attribute, not "${value}"`)
      }
      settings.byFilter.push({
        filter: parseFilter(value.slice(0, end)),
        attributes: new Set(attributes.map((one) => one.trim())),
      })
      return
    }
    case 'applyToDelegation':
    case 'applyToDelegration':
      settings.delegation = readFlag(value)
      return
    case 'applyToPreApproval':
      settings.preApproval = readFlag(value)
      return
    default:
      throw new Error(
        `must be name=value with allowedFilters, filterMap, applyToDelegation or applyToPreApproval, not "${line}"`,
      )
  }
}

function readFlag(value: string): boolean {
  const word = value.trim().toLowerCase()
  if (word === 'true' || word === 'false') return word === 'true'
  throw new Error(`must be true or false, not "${value}"`)
}

/** Whoever one of the filters describes may; the first filter of the map that describes somebody says what they see. */
function filterHelper({ allowed, byFilter, delegation, preApproval }: FilterHelperSettings): UiHelper {
  const isAllowed = ({ attributes }: Subject): boolean => allowed.some((filter) => matches(filter, attributes))
  return {
    mayEdit: isAllowed,
    attributesOf: (subject) =>
      byFilter.find(({ filter }) => matches(filter, subject.attributes))?.attributes ?? new Set(),
    mayDelegate: (subject) => delegation && isAllowed(subject),
    mayPreApprove: (subject) => preApproval && isAllowed(subject),
  }
}
