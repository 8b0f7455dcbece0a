import { type AnyNode, getLineInfo, type Identifier, type Node, type Pattern, type Program, parse } from 'acorn'

/**
 * A variable. Variables of the same name in the blocks of one function count as one, so knowledge applies to all of
 * them or to none.
 */
export interface Variable {
  readonly name: string
  /** The values assigned to it, with the scope of each assignment. Undefined if unknown. */
  readonly values: (ScopedNode | undefined)[]
}

export interface Scope {
  readonly node: AnyNode
  readonly parent: Scope | undefined
  readonly variables: Map<string, Variable>
}

/** Every node with its scope. */
export interface ScopedNode {
  readonly node: AnyNode
  readonly scope: Scope
}

/** Undefined for names that the script does not declare or assign. */
export function variableOf(name: string, scope: Scope | undefined): Variable | undefined {
  for (let at = scope; at !== undefined; at = at.parent) {
    const found = at.variables.get(name)
    if (found !== undefined) return found
  }
  return undefined
}

/** The nodes of the whole script. An assignment without a declaration creates a variable of the script. */
export function scopedNodes(program: Program): ScopedNode[] {
  const root: Scope = { node: program, parent: undefined, variables: new Map() }
  const nodes: ScopedNode[] = []
  const stack: ScopedNode[] = [{ node: program, scope: root }]
  for (let item = stack.pop(); item !== undefined; item = stack.pop()) {
    const { node, scope } = item
    nodes.push(item)
    declare(node, scope)
    const inner = isFunction(node) ? functionScope(node, scope) : scope
    for (const child of childrenOf(node).reverse()) stack.push({ node: child, scope: inner })
  }
  for (const { node, scope } of nodes) assign(node, scope, root)
  return nodes
}

function functionScope(node: FunctionNode, parent: Scope): Scope {
  const scope: Scope = { node, parent, variables: new Map() }
  for (const parameter of node.params) add(scope, parameter, undefined)
  return scope
}

function declare(node: AnyNode, scope: Scope): void {
  if (node.type === 'VariableDeclarator') {
    if (node.init) add(scope, node.id, node.init)
    else for (const { name } of namesIn(node.id)) variable(scope, name)
  }
  if (node.type === 'ForOfStatement' || node.type === 'ForInStatement') {
    const names = node.left.type === 'VariableDeclaration' ? node.left.declarations.map(({ id }) => id) : [node.left]
    for (const name of names) add(scope, name, undefined)
  }
  if ((node.type === 'FunctionDeclaration' || node.type === 'ClassDeclaration') && node.id) {
    add(scope, node.id, undefined)
  }
  if (node.type === 'ImportDeclaration') for (const { local } of node.specifiers) add(scope, local, undefined)
  if (node.type === 'CatchClause' && node.param) add(scope, node.param, undefined)
}

function assign(node: AnyNode, scope: Scope, root: Scope): void {
  if (node.type === 'AssignmentExpression') {
    const isPlain = node.operator === '=' && node.left.type === 'Identifier'
    for (const { name } of namesIn(node.left)) {
      const held = variableOf(name, scope) ?? variable(root, name)
      held.values.push(isPlain ? { node: node.right, scope } : undefined)
    }
  }
  if (node.type === 'UpdateExpression' && node.argument.type === 'Identifier') {
    variableOf(node.argument.name, scope)?.values.push(undefined)
  }
}

/** The parts of a destructuring pattern are unknown. */
function add(scope: Scope, pattern: Pattern, value: AnyNode | undefined): void {
  const known = pattern.type === 'Identifier' && value !== undefined ? { node: value, scope } : undefined
  for (const { name } of namesIn(pattern)) variable(scope, name).values.push(known)
}

function variable(scope: Scope, name: string): Variable {
  const held = scope.variables.get(name) ?? { name, values: [] }
  scope.variables.set(name, held)
  return held
}

function namesIn(pattern: AnyNode): Identifier[] {
  switch (pattern.type) {
    case 'Identifier':
      return [pattern]
    case 'MemberExpression':
      return []
    case 'AssignmentPattern':
      return namesIn(pattern.left)
    case 'Property':
      return namesIn(pattern.value)
    default:
      return childrenOf(pattern).flatMap(namesIn)
  }
}

/** Throws an Error with the line for invalid JavaScript. */
export function parseScript(text: string, form: 'script' | 'module'): Program {
  try {
    return parse(text, { ecmaVersion: 'latest', sourceType: form, allowHashBang: true })
  } catch (cause) {
    if (cause instanceof RangeError) throw new Error('is nested too deeply', { cause })
    throw cause
  }
}

/** The position of the node in its text. */
export const lineOf = (node: Node, text: string): number => getLineInfo(text, node.start).line

/** The direct child nodes, in the order of the text. */
function childrenOf(node: AnyNode): AnyNode[] {
  const children: AnyNode[] = []
  for (const field of Object.values(node) as unknown[]) {
    if (isNode(field)) children.push(field)
    else if (Array.isArray(field)) for (const item of field) if (isNode(item)) children.push(item)
  }
  return children
}

const isNode = (value: unknown): value is AnyNode =>
  typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string'

type FunctionNode = Extract<AnyNode, { type: 'FunctionDeclaration' | 'FunctionExpression' | 'ArrowFunctionExpression' }>

export const isFunction = (node: AnyNode): node is FunctionNode =>
  node.type === 'FunctionDeclaration' || node.type === 'FunctionExpression' || node.type === 'ArrowFunctionExpression'
