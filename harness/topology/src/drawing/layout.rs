//! Where boxes go: rows that fill a rectangle of a pleasant shape.

/// How much wider than high an arrangement should be.
const RATIO: f64 = 2.4;

/// How much more full rows matter than the shape.
const FULLNESS: f64 = 40.0;

/// Numbers of columns that are tried.
const COLUMNS_MOST: usize = 64;

/// Rectangles in rows.
pub(super) struct Rows {
    pub(super) width: usize,
    pub(super) height: usize,
    /// The upper left corner of each.
    pub(super) corners: Vec<(usize, usize)>,
}

/// Lays out rectangles in their order, `gap` apart and at most `most` wide where that can be.
pub(super) fn rows(sizes: &[(usize, usize)], gap: usize, most: usize) -> Rows {
    let widest = sizes.iter().map(|&(width, _)| width).max().unwrap_or(0);
    let area: usize = sizes.iter().map(|&(width, height)| (width + gap) * (height + gap)).sum();
    let mut best: Option<(f64, Rows)> = None;
    for columns in 1..=sizes.len().clamp(1, COLUMNS_MOST) {
        let within = columns * (widest + gap);
        let tried = filled(sizes, gap, within);
        if columns > 1 && tried.width > most {
            break;
        }
        let shape = tried.width.max(1) as f64 / tried.height.max(1) as f64 / RATIO;
        let whole = (tried.width + gap) * (tried.height + gap);
        let filled = area as f64 / whole.max(1) as f64;
        let score = shape.ln().abs() - FULLNESS * filled.ln().min(0.0);
        if best.as_ref().is_none_or(|(least, _)| score < *least) {
            best = Some((score, tried));
        }
    }
    best.map_or(Rows { width: 0, height: 0, corners: Vec::new() }, |(_, rows)| rows)
}

/// Fills rows from the left, each at most so wide.
fn filled(sizes: &[(usize, usize)], gap: usize, within: usize) -> Rows {
    let (mut x, mut y, mut row_height) = (0, 0, 0);
    let (mut width, mut corners) = (0, Vec::with_capacity(sizes.len()));
    for &(own_width, own_height) in sizes {
        if x > 0 && x + own_width > within {
            y += row_height + gap;
            (x, row_height) = (0, 0);
        }
        corners.push((x, y));
        x += own_width + gap;
        width = width.max(x - gap);
        row_height = row_height.max(own_height);
    }
    Rows { width, height: y + row_height, corners }
}

#[cfg(test)]
mod tests {
    use super::rows;

    #[test]
    fn equal_boxes_fill_their_rows() {
        for (count, width, height) in [(16, 100, 50), (28, 50, 20), (8, 400, 120), (64, 24, 20)] {
            let laid = rows(&vec![(width, height); count], 4, 1000);
            let in_first = laid.corners.iter().filter(|(_, y)| *y == 0).count();
            assert_eq!(count % in_first, 0, "{count}: {in_first} in a row");
            assert!(laid.width <= 1000 && laid.width > laid.height / 2, "{count}");
        }
    }

    #[test]
    fn boxes_do_not_overlap() {
        let sizes: Vec<(usize, usize)> =
            (1..40).map(|at| (at * 7 % 90 + 5, at * 5 % 40 + 5)).collect();
        let laid = rows(&sizes, 3, 300);
        let placed: Vec<_> = laid.corners.iter().zip(&sizes).collect();
        for (at, ((x, y), (width, height))) in placed.iter().enumerate() {
            assert!(x + width <= laid.width && y + height <= laid.height);
            for ((u, v), (other_width, other_height)) in &placed[at + 1..] {
                let apart = x + width < *u
                    || u + other_width < *x
                    || y + height < *v
                    || v + other_height < *y;
                assert!(apart, "{at}");
            }
        }
        assert_eq!((rows(&[], 3, 300).width, rows(&[], 3, 300).height), (0, 0));
        assert_eq!(rows(&[(900, 10)], 3, 300).width, 900, "what is wider stands alone");
    }
}
