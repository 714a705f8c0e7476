;;; Makes garbage of which the collector, which uses write protection and signals itself, has to tell the living from the dead.
(defvar *kept* (make-hash-table))
(dotimes (i 150)
  (setf (gethash (mod i 40) *kept*) (loop for j below 2000 collect (* i j)))
  (make-array 200000 :initial-element i)
  (let ((sum 0))
    (maphash (lambda (key value) (incf sum (+ key (reduce #'+ value)))) *kept*)
    (format t "~d ~d~%" i sum)
    (finish-output)))
