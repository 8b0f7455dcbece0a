import type { Issues, Path } from '#kernel/issues.ts'
import { compilePattern, type SafePattern } from '#kernel/text/safe-pattern.ts'
import type { FormAttributeType, FormAttributeView, ListItem } from '#sdk/contract/forms.ts'
import { flag, list, parsed, text, wholeNumber } from '#sdk/module/parameter-types.ts'
import type { ParsedParameters } from '#sdk/module/parameters.ts'
import type { Params } from '#sdk/module/params.ts'
import type { Translate } from '#sdk/page/configured-texts.ts'

/** One field of a form, read from the parameters `{attribute}.displayName` and so on. */
export interface FormAttribute {
  readonly name: string
  readonly displayName: string
  /** Shown, but only the server sets it. */
  readonly readOnly: boolean
  /** False: neither shown nor read from the form; only the server sets it. */
  readonly show: boolean
  readonly required: boolean
  readonly pattern: SafePattern | undefined
  /** The message when the pattern does not match. */
  readonly patternMessage: string
  /** 0: no limit. */
  readonly minChars: number
  /** 0: no limit but `maxValueLength`. */
  readonly maxChars: number
  readonly unique: boolean
  readonly type: FormAttributeType
  /** Label and value of the choices; empty if any value is allowed. */
  readonly items: readonly ListItem[]
  /** The value of a field that the server sets, if nothing else gives one. */
  readonly preset: string | undefined
  /** The source of the list, if it is not in the configuration. */
  readonly source: FormValueSource | undefined
}

/** The class that provides the values of a field, not yet looked up. */
interface FormValueSource {
  readonly className: string
  /** Each of the form `name=value`. */
  readonly settings: readonly string[]
  readonly path: Path
  readonly settingPath: (index: number) => Path
}

/** Longer values are rejected by every form. */
export const maxValueLength = 10_000
export const maxFormAttributes = 200
const maxListItems = 1_000

const typeNames: Readonly<Record<string, FormAttributeType>> = {
  text: 'text',
  'text-area': 'text-area',
  'text-list': 'text-list',
  list: 'list',
  textarea: 'text-area',
  'text-button': 'text',
  'text-list-box': 'text-list',
  'chk-text-list-box': 'text-list',
}

/** The rows that describe the fields of a form; a module puts them into its parameter table. */
export const formAttributeRows = {
  '<attribute>.displayName': text({ about: 'The label of the field.', requirement: 'for each attribute' }),
  '<attribute>.readOnly': flag({ about: '`"true"`: shown, but never accepted.' }),
  '<attribute>.required': parsed('flag', readFlag, {
    about: 'Whether a value must be there.',
    requirement: 'no, `true`',
  }),
  '<attribute>.regEx': parsed('RE2 pattern', compilePattern, {
    about: 'The pattern of the whole value, in RE2 syntax. An optional value may be absent.',
  }),
  '<attribute>.regExFailedMsg': text({ about: 'The error if `regEx` does not match.' }),
  '<attribute>.minChars': wholeNumber({ about: 'Minimum length; 0 for none.', fallback: 0, max: maxValueLength }),
  '<attribute>.maxChars': wholeNumber({
    about: `The most characters; 0 for the gateway's own limit of ${maxValueLength}.`,
    fallback: 0,
    max: maxValueLength,
  }),
  '<attribute>.mxnChars': wholeNumber({
    about: 'Another spelling of `maxChars`, which existing YAML has.',
    fallback: 0,
    max: maxValueLength,
  }),
  '<attribute>.realOnly': parsed('flag', readFlag, {
    about: 'A misspelling of `readOnly` that existing YAML has. It is read as `readOnly`, and `check` says so.',
  }),
  '<attribute>.redExFailedMsg': text({
    about: 'A misspelling of `regExFailedMsg` that existing YAML has. It is read as that, and `check` says so.',
  }),
  '<attribute>.unique': flag({
    about:
      '`"true"`: the value must be unique, in the directory and in open registrations. The login is unique unless this is `"false"`.',
  }),
  '<attribute>.type': parsed('field type', readType, {
    about: '`text` (the default), `text-area`, `text-list` (suggestions) or `list` (a choice).',
  }),
  '<attribute>.values': list({ about: 'The options, each as `label=value`.' }),
  '<attribute>.show': flag({ about: '`"false"`: neither shown nor accepted.', fallback: true }),
  '<attribute>.default': text({
    about:
      'The value of a field that users cannot set (`readOnly`, or not shown), unless the login or an invitation gives one.',
  }),
  '<attribute>.dynamicValueSource.className': text({ about: 'The class that provides the values of the list.' }),
  '<attribute>.dynamicValueSource.config': list({ about: 'Its settings, each as `name=value`.' }),
}

type FormRows = ParsedParameters<typeof formAttributeRows>

function readFlag(written: string): boolean {
  const word = written.toLowerCase()
  if (word !== 'true' && word !== 'false') throw new Error(`must be "true" or "false", not "${written}"`)
  return word === 'true'
}

function readType(written: string): FormAttributeType {
  const type = Object.hasOwn(typeNames, written) ? typeNames[written] : undefined
  if (type === undefined) throw new Error(`must be one of text, text-area, text-list, list, not "${written}"`)
  return type
}

/**
 * The fields in the order of their names. Reports a name that repeats, one without a label, and parameters of an attribute
 * that the form does not have.
 */
export function readFormAttributes(
  names: readonly string[],
  rows: FormRows,
  params: Params,
  issues: Issues,
  options: { readonly namesParameter: string; readonly requiredUnlessSaid: boolean },
): FormAttribute[] {
  const { namesParameter } = options
  const known = new Set<string>()
  if (names.length > maxFormAttributes) {
    issues.error(params.pathOf(namesParameter), `a form has at most ${maxFormAttributes} attributes`)
  }
  for (const [index, name] of names.entries()) {
    const folded = name.toLowerCase()
    if (known.has(folded))
      issues.error(params.pathOf(namesParameter, index), `the attribute "${name}" appears here twice`)
    known.add(folded)
  }
  for (const row of Object.keys(formAttributeRows) as (keyof FormRows)[]) {
    for (const name of rows[row].keys()) {
      if (names.includes(name)) continue
      const parameter = row.replace('<attribute>', name)
      issues.error(params.pathOf(parameter), `"${parameter}": "${name}" is not one of "${namesParameter}"`)
    }
  }
  return names
    .slice(0, maxFormAttributes)
    .map((name) => readOne(name, rows, params, issues, options.requiredUnlessSaid))
}

function readOne(
  name: string,
  rows: FormRows,
  params: Params,
  issues: Issues,
  requiredUnlessSaid: boolean,
): FormAttribute {
  const displayName = rows['<attribute>.displayName'].get(name) ?? ''
  const labelParameter = `${name}.displayName`
  if (displayName === '') issues.error(params.pathOf(labelParameter), `parameter "${labelParameter}" is required`)
  const maxChars = rows['<attribute>.maxChars'].get(name) || (rows['<attribute>.mxnChars'].get(name) ?? 0)
  const minChars = rows['<attribute>.minChars'].get(name) ?? 0
  if (maxChars > 0 && minChars > maxChars) {
    issues.error(params.pathOf(`${name}.minChars`), `"${name}.minChars" is more than the ${maxChars} of "maxChars"`)
  }
  const source = readSource(name, rows, params, issues)
  const items = readItems(name, rows['<attribute>.values'].get(name) ?? [], params, issues)
  const type = rows['<attribute>.type'].get(name) ?? 'text'
  if (type === 'list' && items.length === 0 && source === undefined) {
    issues.error(params.pathOf(`${name}.type`), `the list "${name}" has neither "values" nor a "dynamicValueSource"`)
  }
  if (items.length > 0 && source !== undefined) {
    issues.error(
      params.pathOf(`${name}.values`),
      `"${name}" has "values" and a "dynamicValueSource"; it takes one of them`,
    )
  }
  const misspelled = (wrong: 'realOnly' | 'redExFailedMsg', right: string): void => {
    const parameter = `${name}.${wrong}`
    if (!rows[`<attribute>.${wrong}`].has(name)) return
    issues.warning(params.pathOf(parameter), `"${parameter}" is a misspelling and is read as "${name}.${right}"`)
  }
  misspelled('realOnly', 'readOnly')
  misspelled('redExFailedMsg', 'regExFailedMsg')
  const readOnly = rows['<attribute>.readOnly'].get(name) ?? rows['<attribute>.realOnly'].get(name) ?? false
  const show = rows['<attribute>.show'].get(name) ?? true
  const preset = rows['<attribute>.default'].get(name)
  if (preset !== undefined && show && !readOnly) {
    issues.error(params.pathOf(`${name}.default`), `"${name}.default" is for fields that are read only or not shown`)
  }
  return {
    name,
    displayName,
    readOnly,
    show,
    required: rows['<attribute>.required'].get(name) ?? requiredUnlessSaid,
    pattern: rows['<attribute>.regEx'].get(name),
    patternMessage:
      rows['<attribute>.regExFailedMsg'].get(name) ??
      rows['<attribute>.redExFailedMsg'].get(name) ??
      `${displayName} is not valid`,
    minChars,
    maxChars,
    unique: rows['<attribute>.unique'].get(name) ?? false,
    type,
    items,
    preset,
    source,
  }
}

function readSource(name: string, rows: FormRows, params: Params, issues: Issues): FormValueSource | undefined {
  const className = rows['<attribute>.dynamicValueSource.className'].get(name)
  const settings = rows['<attribute>.dynamicValueSource.config'].get(name)
  const classParameter = `${name}.dynamicValueSource.className`
  const settingsParameter = `${name}.dynamicValueSource.config`
  if (className === undefined) {
    if (settings !== undefined) {
      issues.error(params.pathOf(settingsParameter), `"${settingsParameter}" is not used without "${classParameter}"`)
    }
    return undefined
  }
  return {
    className,
    settings: settings ?? [],
    path: params.pathOf(classParameter),
    settingPath: (index) => params.pathOf(settingsParameter, index),
  }
}

function readItems(name: string, written: readonly string[], params: Params, issues: Issues): ListItem[] {
  const parameter = `${name}.values`
  if (written.length > maxListItems) {
    issues.error(params.pathOf(parameter), `"${parameter}" has more than ${maxListItems} values`)
  }
  return written.slice(0, maxListItems).flatMap((item, index) => {
    const equals = item.indexOf('=')
    if (equals > 0) return [{ name: item.slice(0, equals), value: item.slice(equals + 1), num: index }]
    issues.error(params.pathOf(parameter, index), `"${parameter}": must be "label=value", not "${item}"`)
    return []
  })
}

/** The field as clients get it, with its limits. `items` are those of its source, if it has one. */
export function viewFormAttribute(
  attribute: FormAttribute,
  items: readonly ListItem[] = attribute.items,
): FormAttributeView {
  const { name, displayName, readOnly, required, pattern, patternMessage, minChars, maxChars, unique, type, show } =
    attribute
  return {
    name,
    displayName,
    readOnly,
    required,
    ...(pattern === undefined ? {} : { regEx: pattern.source, regExFailedMsg: patternMessage }),
    ...(minChars === 0 ? {} : { minChars }),
    ...(maxChars === 0 ? {} : { maxChars }),
    unique,
    type,
    values: items,
    show,
  }
}

/** The field with its texts in another language. Values stay the same. */
export const localizedAttribute = (attribute: FormAttribute, translate: Translate): FormAttribute => ({
  ...attribute,
  displayName: translate(attribute.displayName),
  patternMessage: translate(attribute.patternMessage),
  items: attribute.items.map((item) => ({ ...item, name: translate(item.name) })),
})
