import type { CompletionOption, CompletionPlace } from './places.ts'

/** For bash 3.2 and later, without the package bash-completion. */
export const bashCompletion = (places: readonly CompletionPlace[]): string => `# Completion of gatehouse for bash.
_gatehouse() {
  local IFS=$' \\t\\n' current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} place=gatehouse words= files= i
  COMPREPLY=()
  # Bash takes --name=value apart.
  if [ "$current" = = ]; then
    current=
  elif [ "$previous" = = ]; then
    previous=\${COMP_WORDS[COMP_CWORD-2]}
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$place \${COMP_WORDS[i]}" in
      ${patterns(places.slice(1).map(({ words }) => words))}) place="$place \${COMP_WORDS[i]}" ;;
    esac
  done
  case "$place $previous" in
${values(places)}
  esac
  case $place in
${places.map(placeCase).join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  if [ -n "$files" ] && [ "\${current#-}" = "$current" ]; then _gatehouse_files; fi
}
_gatehouse_files() {
  local IFS=$'\\n'
  if type compopt > /dev/null 2>&1; then compopt -o filenames 2> /dev/null; fi
  COMPREPLY+=($(compgen -f -- "$current"))
}
complete -F _gatehouse gatehouse`

const patterns = (texts: readonly string[]): string => texts.map((text) => `'${text}'`).join(' | ')

function placeCase({ words, next, options, takesFiles }: CompletionPlace): string {
  const all = [...next, ...options].map(({ word }) => word).join(' ')
  return `    '${words}') words='${all}'${takesFiles ? ' files=yes' : ''} ;;`
}

/** What stands after an option: its values, files, or anything, which can't be completed. */
function values(places: readonly CompletionPlace[]): string {
  const cases = new Map<string, string[]>()
  for (const { words, options } of places) {
    for (const option of options) {
      const action = actionOf(option)
      if (action === undefined) continue
      cases.set(action, [...(cases.get(action) ?? []), `${words} ${option.word}`])
    }
  }
  return Array.from(cases, ([action, found]) => `    ${patterns(found)}) ${action}return ;;`).join('\n')
}

function actionOf({ value }: CompletionOption): string | undefined {
  if (value === undefined) return undefined
  if (value.isFile) return '_gatehouse_files; '
  return value.choices.length === 0 ? '' : `COMPREPLY=($(compgen -W '${value.choices.join(' ')}' -- "$current")); `
}
