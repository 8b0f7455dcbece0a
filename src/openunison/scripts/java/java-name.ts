/**
 * The name of a Java type with `$` before nested types: `a.b.Outer.Inner` and `a.b.Outer$Inner` are the same type.
 * Packages are in lower case, so the first part with a capital is the outermost type.
 */
export function typeName(written: string): string {
  const parts = written.split(/[.$]/)
  const outer = parts.findIndex((part) => /^[A-Z]/.test(part))
  if (outer < 0) return written
  return [...parts.slice(0, outer), parts.slice(outer).join('$')].join('.')
}
