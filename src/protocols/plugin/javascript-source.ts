import { stripTypeScriptTypes } from 'node:module'
import { Script } from 'node:vm'
import { parse } from 'acorn'

/**
 * JavaScript from configuration, checked but never run here. A classic script has the loose rules of older
 * JavaScript; text with import, export, top-level await or types is a module.
 */
export interface JavaScriptCode {
  readonly form: 'script' | 'module'
  /** Without types. Lines and columns match the source. */
  readonly text: string
}

const maxJavaScriptLength = 1_000_000

/** Throws an Error whose message says the line and what is wrong. */
export function checkJavaScript(source: string): JavaScriptCode {
  refuseTooLong(source)
  const asScript = syntaxError(() => new Script(source, { filename: 'source' }))
  if (asScript === undefined) return { form: 'script', text: source }
  const isModule = /\b(import|export|await)\b/.test(asScript.message)
  let text: string
  try {
    text = stripTypeScriptTypes(source)
  } catch (error) {
    throw described(isModule ? error : asScript)
  }
  if (!isModule && text === source) throw described(asScript)
  return { form: 'module', text }
}

/**
 * Like checkJavaScript, for the file of that name, which is always a module. The code that removes types is large,
 * so it is not loaded for a file whose name and content are JavaScript already.
 */
export function checkJavaScriptModule(source: string, name: string): JavaScriptCode {
  refuseTooLong(source)
  if (!/\.[cm]?ts$/.test(name) && isModule(source)) return { form: 'module', text: source }
  try {
    return { form: 'module', text: stripTypeScriptTypes(source) }
  } catch (error) {
    throw described(error)
  }
}

function isModule(source: string): boolean {
  try {
    parse(source, { ecmaVersion: 'latest', sourceType: 'module', allowHashBang: true })
    return true
  } catch {
    return false
  }
}

function refuseTooLong(source: string): void {
  if (source.length > maxJavaScriptLength) throw new Error(`is longer than ${maxJavaScriptLength} characters`)
}

function syntaxError(parse: () => unknown): SyntaxError | undefined {
  try {
    parse()
    return undefined
  } catch (error) {
    if (error instanceof SyntaxError) return error
    throw error
  }
}

/** Both parsers put `file:line` on the first line of the stack. */
function described(error: unknown): Error {
  if (!(error instanceof Error)) return new Error(String(error))
  const line = /^[^\n]*:(\d+)\n/.exec(error.stack ?? '')?.[1]
  return new Error(`${line === undefined ? '' : `line ${line}: `}${error.message}`, { cause: error })
}

/**
 * The names that code declares at its top level, and the exports of a module; undefined if that can't be known
 * without running it.
 */
export function declaredNames({ form, text }: JavaScriptCode): ReadonlySet<string> | undefined {
  const names = new Set<string>()
  try {
    const program = parse(text, { ecmaVersion: 'latest', sourceType: form, allowHashBang: true })
    for (const statement of program.body) {
      const isExport = statement.type === 'ExportNamedDeclaration'
      if (statement.type === 'ExportAllDeclaration' || statement.type === 'ExpressionStatement') return undefined
      const declaration = isExport ? statement.declaration : statement
      for (const { exported } of isExport ? statement.specifiers : []) {
        names.add(exported.type === 'Identifier' ? exported.name : String(exported.value))
      }
      if (declaration?.type === 'FunctionDeclaration' && declaration.id !== null) names.add(declaration.id.name)
      if (declaration?.type !== 'VariableDeclaration') continue
      for (const { id } of declaration.declarations) {
        if (id.type !== 'Identifier') return undefined
        names.add(id.name)
      }
    }
    return names
  } catch {
    return undefined
  }
}
