/**
 * The text as Kubernetes must be given it in `env`, `command` and `args`, where it replaces `$(NAME)` and takes `$$` for
 * one dollar sign.
 */
export const escapeVariables = (text: string): string => text.replaceAll('$', '$$$$')
