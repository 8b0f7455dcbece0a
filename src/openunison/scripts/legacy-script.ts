import type { AnyNode } from 'acorn'
import { javaMembers } from '#openunison/scripts/runtime/java-global.ts'
import { checkJavaScript, checkJavaScriptModule, type JavaScriptCode } from '#protocols/plugin/javascript-source.ts'
import { insteadOfMember, insteadOfType } from './alternatives.ts'
import { inferJava, type JavaFact, javaMember, loadedType, memberName, servedType } from './java-inference.ts'
import type { LegacySignatures } from './legacy-signatures.ts'
import { lineOf, parseScript, type Scope, type ScopedNode, scopedNodes, variableOf } from './script-scopes.ts'

/** An unsupported use in a legacy script. */
interface LegacyFinding {
  readonly level: 'error' | 'warning'
  /** Begins with the line, and ends with what to use instead, if something is known. */
  readonly message: string
  /** What is used, for counting. */
  readonly use: string
}

export interface CheckedScript {
  readonly code: JavaScriptCode
  /** Written for OpenUnison: it gets Java objects. */
  readonly legacy: boolean
  readonly findings: readonly LegacyFinding[]
  /** Targets that it names by a plain text. */
  readonly targets: readonly string[]
  /** Workflows that it starts and names by a plain text; undefined for one whose name is not known beforehand. */
  readonly workflows: readonly (string | undefined)[]
  /** All plain texts in it, if it starts a workflow whose name is not known beforehand. */
  readonly texts: readonly string[]
}

type Infer = (node: AnyNode, scope: Scope) => JavaFact | undefined

/**
 * Undefined signatures: Java is not supported there. `always`: it is legacy, whether or not it names Java. Throws an
 * Error whose message has the line.
 */
export function checkScript(source: string, signatures: LegacySignatures | undefined, always = false): CheckedScript {
  const code = checkJavaScript(source)
  const nodes = scopedNodes(parseScript(code.text, code.form))
  const infer = inferJava(nodes, signatures ?? {})
  const use = nodes.find((item) => usesJava(item, infer))
  if (use === undefined && !always) return { code, legacy: false, findings: [], targets: [], workflows: [], texts: [] }
  const line = use === undefined ? 1 : lineOf(use.node, code.text)
  if (code.form === 'module') throw new Error(`line ${line}: ES modules cannot use Java objects`)
  if (signatures === undefined) throw new Error(`line ${line}: scripts of this kind cannot use Java objects`)
  const workflows = namesIn(nodes, infer, workflowMembers)
  return {
    code,
    legacy: true,
    findings: [...findingsOf(nodes, infer, code.text), ...misplacedCalls(nodes, infer, signatures, code.text)],
    targets: namesIn(nodes, infer, targetMembers).flatMap((name) => name ?? []),
    workflows,
    texts: workflows.includes(undefined) ? textsIn(nodes) : [],
  }
}

/** Like checkScript, for the file of that name, which is always a module. */
export function checkModule(source: string, name: string): JavaScriptCode {
  const code = checkJavaScriptModule(source, name)
  if (code.text === source && !source.includes('Java')) return code
  const nodes = scopedNodes(parseScript(code.text, 'module'))
  const use = nodes.find(({ node, scope }) => javaMember(node, scope) !== undefined)
  if (use !== undefined) throw new Error(`line ${lineOf(use.node, code.text)}: ES modules cannot use Java objects`)
  return code
}

/** Names Java, or calls a Java method of an argument. */
function usesJava({ node, scope }: ScopedNode, infer: Infer): boolean {
  if (javaMember(node, scope) !== undefined) return true
  if (node.type === 'NewExpression') return ['class', 'unserved'].includes(infer(node.callee, scope)?.is ?? '')
  if (node.type !== 'CallExpression' || node.callee.type !== 'MemberExpression') return false
  const of = infer(node.callee.object, scope)
  if (of?.is === 'class' || of?.is === 'unserved') return true
  const name = memberName(node.callee) ?? ''
  const isShared = of?.name === 'java.util.HashSet' && Object.hasOwn(Array.prototype, name)
  return of?.is === 'instance' && !isShared && servedType(of.name)?.methods.includes(name) === true
}

function findingsOf(nodes: readonly ScopedNode[], infer: Infer, script: string): LegacyFinding[] {
  const found: LegacyFinding[] = []
  const used = new Set<string>()
  const add = (level: LegacyFinding['level'], node: AnyNode, use: string, text: string) =>
    found.push({ level, use, message: `line ${lineOf(node, script)}: ${text}` })
  for (const { node, scope } of nodes) {
    const member = javaMember(node, scope)
    if (member !== undefined && !javaMembers.includes(member)) {
      add('error', node, `Java.${member}`, `Java.${member} is not served`)
    }
    const problem = problemOf(node, scope, infer)
    if (problem === undefined) continue
    add('error', node, problem.use, problem.text)
    used.add(problem.use)
  }
  for (const { node, scope } of nodes) {
    const name = loadedType(node, scope)
    if (name !== undefined && servedType(name) === undefined && !used.has(name)) {
      add('warning', node, name, `the Java type ${name} is not served; using it fails`)
    }
    if (node.type === 'CallExpression' && name === undefined && javaMember(node.callee, scope) === 'type') {
      add('warning', node, 'Java.type', 'the name of the Java type is not known beforehand')
    }
  }
  return found
}

interface Problem {
  /** The type, or its member. */
  readonly use: string
  readonly text: string
}

function problemOf(node: AnyNode, scope: Scope, infer: Infer): Problem | undefined {
  if (node.type === 'ImportExpression') return { use: 'import()', text: 'a legacy script cannot import' }
  if (makesCode(node, scope)) {
    return { use: 'eval', text: 'a legacy script cannot make code of texts (eval, Function)' }
  }
  if (node.type === 'NewExpression') {
    const made = infer(node.callee, scope)
    if (made?.is === 'unserved') return unserved(made.name)
    if (made?.is !== 'class' || servedType(made.name)?.constructs === true) return undefined
    return { use: `new ${made.name}`, text: `${made.name} cannot be made with new` }
  }
  if (node.type === 'MemberExpression' && node.object.type !== 'Super') {
    const of = infer(node.object, scope)
    const name = memberName(node)
    if (of?.is === 'unserved') return unserved(of.name)
    if (of?.is !== 'class' || name === undefined || servedType(of.name)?.statics.includes(name) === true)
      return undefined
    return unservedMember(of.name, name, `${of.name}.${name}`)
  }
  if (node.type === 'CallExpression' && node.callee.type === 'MemberExpression') {
    const of = infer(node.callee.object, scope)
    const name = memberName(node.callee)
    if (of?.is !== 'instance' || name === undefined) return undefined
    const { methods = [], isArray = false } = servedType(of.name) ?? {}
    const isServed = methods.includes(name) || name in Object.prototype || (isArray && name in Array.prototype)
    return isServed ? undefined : unservedMember(of.name, name, `${of.name}.${name}()`)
  }
  return undefined
}

const unserved = (type: string): Problem => ({
  use: type,
  text: `the Java type ${type} is not served${insteadOfType(type)}`,
})

const unservedMember = (type: string, member: string, use: string): Problem => ({
  use,
  text: `${use} is not served${insteadOfMember(type, member)}`,
})

type NamingMembers = Readonly<Record<string, readonly string[]>>

/** Members whose first argument names a target. */
const targetMembers: NamingMembers = {
  'com.tremolosecurity.provisioning.core.ProvisioningEngine': ['getTarget'],
  'com.tremolosecurity.k8s.util.K8sUtils': ['loadConfigMap', 'loadSecret'],
}

/** Members whose first argument names a workflow. */
const workflowMembers: NamingMembers = { 'com.tremolosecurity.provisioning.core.ProvisioningEngine': ['getWorkFlow'] }

/** Members that change a target. */
const writingMembers: NamingMembers = {
  'com.tremolosecurity.provisioning.core.UserStoreProvider': [
    ...['callWSPost', 'callWSPut', 'callWSPatchJson', 'callWSDelete'],
    ...['addGroup', 'deleteGroup'],
  ],
}

/**
 * Only tasks and jobs start workflows, and jobs leave changes to them. A script without functions that the gateway calls
 * may be included in a task.
 */
function misplacedCalls(
  nodes: readonly ScopedNode[],
  infer: Infer,
  signatures: LegacySignatures,
  script: string,
): LegacyFinding[] {
  const called = Object.values(signatures)
  const has = (wanted: string): boolean => called.some((list) => list.some(({ kind }) => kind === wanted))
  if (called.length === 0 || has('taskRequest')) return []
  const isJob = has('jobContext')
  const members = isJob ? writingMembers : workflowMembers
  const where = isJob ? 'in workflow tasks only; start a workflow that does it' : 'in workflow tasks and jobs only'
  return nodes.flatMap(({ node, scope }) => {
    if (node.type !== 'CallExpression' || node.callee.type !== 'MemberExpression') return []
    const type = infer(node.callee.object, scope)?.name ?? ''
    const name = memberName(node.callee) ?? ''
    if (members[type]?.includes(name) !== true) return []
    const use = `${type}.${name}()`
    const message = `line ${lineOf(node, script)}: ${use} is served ${where}`
    return [{ level: 'error' as const, use, message }]
  })
}

/** The names in calls of these members; undefined for one that is not a plain text. */
function namesIn(nodes: readonly ScopedNode[], infer: Infer, members: NamingMembers): (string | undefined)[] {
  const found = new Set<string | undefined>()
  for (const { node, scope } of nodes) {
    if (node.type !== 'CallExpression' || node.callee.type !== 'MemberExpression') continue
    const type = infer(node.callee.object, scope)?.name ?? ''
    if (members[type]?.includes(memberName(node.callee) ?? '') !== true) continue
    const [first] = node.arguments
    found.add(first?.type === 'Literal' && typeof first.value === 'string' ? first.value : undefined)
  }
  return [...found]
}

const textsIn = (nodes: readonly ScopedNode[]): string[] =>
  Array.from(
    new Set(
      nodes.flatMap(({ node }) => (node.type === 'Literal' && typeof node.value === 'string' ? [node.value] : [])),
    ),
  )

function makesCode(node: AnyNode, scope: Scope): boolean {
  if (node.type !== 'CallExpression' && node.type !== 'NewExpression') return false
  const { callee } = node
  const isMaker = callee.type === 'Identifier' && (callee.name === 'eval' || callee.name === 'Function')
  return isMaker && variableOf(callee.name, scope) === undefined
}
