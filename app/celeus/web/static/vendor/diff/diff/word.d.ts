export function diffWordsWithSpace(
  oldStr: string,
  newStr: string,
  options: { timeout: number },
): { value: string; added: boolean; removed: boolean }[] | undefined;
